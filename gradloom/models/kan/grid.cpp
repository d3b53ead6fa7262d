#include "gradloom/models/kan/grid.h"

#include <algorithm>
#include <cmath>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/spline/reference.h"
#include "gradloom/models/kan/spline_fit.h"

namespace gradloom::kan {

namespace spline = kernels::spline;

namespace {

constexpr double kSmallestGap = 1e-4;  // between free knots, as a fraction of the range

template <class T>
KnotLine line_of(const Network<T>& network, std::span<const T> buffers, std::size_t l, std::size_t i) {
  const spline::Shape& s = network.shape(l);
  const auto& at = network.slices(l);
  if (s.knots == Knots::uniform)
    return KnotLine::uniform(s.degree, s.grid, static_cast<double>(buffers[network.buffers()[at.lo].offset + i]),
                             static_cast<double>(buffers[network.buffers()[at.hi].offset + i]));
  const T* knots = buffers.data() + network.buffers()[at.knots].offset + i * (s.grid + 1);
  return KnotLine(s.degree, std::vector<double>(knots, knots + s.grid + 1));
}

template <class T>
void store_line(const Network<T>& network, std::span<T> buffers, std::size_t l, std::size_t i, const KnotLine& line) {
  const auto& at = network.slices(l);
  buffers[network.buffers()[at.lo].offset + i] = static_cast<T>(line.lo());
  buffers[network.buffers()[at.hi].offset + i] = static_cast<T>(line.hi());
  if (network.shape(l).knots != Knots::free) return;
  T* knots = buffers.data() + network.buffers()[at.knots].offset + i * (line.grid() + 1);
  for (std::size_t k = 0; k <= line.grid(); ++k) knots[k] = static_cast<T>(line.interior()[k]);
}

// Splits the widest interval until there are `grid` of them.
KnotLine split_widest(const KnotLine& line, unsigned grid) {
  std::vector<double> knots(line.interior().begin(), line.interior().end());
  while (knots.size() < grid + std::size_t{1}) {
    std::size_t widest = 1;
    for (std::size_t k = 1; k < knots.size(); ++k)
      if (knots[k] - knots[k - 1] > (knots[widest] - knots[widest - 1]) * (1 + 1e-9)) widest = k;
    const double middle = 0.5 * (knots[widest - 1] + knots[widest]);
    knots.insert(knots.begin() + static_cast<std::ptrdiff_t>(widest), middle);
  }
  return KnotLine(line.degree(), std::move(knots));
}

// Points that determine a spline on `line` well: several in each interval.
std::vector<double> fitting_points(const KnotLine& line) {
  const std::size_t per_interval = line.degree() + 3;
  std::vector<double> x;
  for (std::size_t k = 0; k < line.grid(); ++k)
    for (std::size_t m = 0; m < per_interval; ++m)
      x.push_back(line.interior()[k] + (line.interior()[k + 1] - line.interior()[k]) * (static_cast<double>(m) + 0.5) /
                                           static_cast<double>(per_interval));
  x.push_back(line.lo());
  x.push_back(line.hi());
  return x;
}

// Copies everything that a change of grid leaves alone: normalisation, bias, base rows.
template <class T>
void copy_rest(const Network<T>& from, std::span<const T> parameters, std::span<const T> buffers, const Network<T>& to,
               std::span<T> new_parameters, std::span<T> new_buffers) {
  const auto copy = [](const Slices& a, std::size_t i, std::span<const T> source, const Slices& b, std::size_t j,
                       std::span<T> target) {
    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(a[i].offset), a[i].stored_size(),
                target.begin() + static_cast<std::ptrdiff_t>(b[j].offset));
  };
  const auto &x = from.affine(), &y = to.affine();
  for (auto [i, j] : {std::pair{x.input_mean, y.input_mean},
                      {x.input_std, y.input_std},
                      {x.output_mean, y.output_mean},
                      {x.output_std, y.output_std}})
    copy(from.buffers(), i, buffers, to.buffers(), j, new_buffers);
  for (std::size_t l = 0; l < from.layers(); ++l) {
    const spline::Shape &s = from.shape(l), &t = to.shape(l);
    if (s.bias)
      copy(from.parameters(), from.slices(l).bias, parameters, to.parameters(), to.slices(l).bias, new_parameters);
    if (!s.base) continue;
    const T* old_weight = parameters.data() + from.parameters()[from.slices(l).weight].offset;
    T* new_weight = new_parameters.data() + to.parameters()[to.slices(l).weight].offset;
    for (std::size_t i = 0; i < s.in; ++i)
      std::copy_n(old_weight + (i * s.rows() + s.rows() - 1) * s.out_padded(), s.out_padded(),
                  new_weight + (i * t.rows() + t.rows() - 1) * t.out_padded());
  }
}

// Coefficients of one input: (spline rows, Out) in double.
template <class T>
std::vector<double> coefficients_of(const spline::Shape& s, const T* weight, std::size_t i) {
  std::vector<double> c(s.spline_rows() * s.out);
  for (std::size_t r = 0; r < s.spline_rows(); ++r)
    for (std::size_t j = 0; j < s.out; ++j)
      c[r * s.out + j] = static_cast<double>(weight[(i * s.rows() + r) * s.out_padded() + j]);
  return c;
}

template <class T>
void store_coefficients(const spline::Shape& s, std::span<const double> c, std::size_t i, T* weight) {
  for (std::size_t r = 0; r < s.spline_rows(); ++r)
    for (std::size_t j = 0; j < s.out; ++j)
      weight[(i * s.rows() + r) * s.out_padded() + j] = static_cast<T>(c[r * s.out + j]);
}

// The old splines of one input at x, out-of-grid policy included: (points, Out).
template <class T>
std::vector<double> old_values(const spline::Shape& s, const spline::Grid<T>& grid, std::size_t i,
                               std::span<const double> c, std::span<const double> x) {
  std::vector<double> values(x.size() * s.out, 0.0);
  for (std::size_t m = 0; m < x.size(); ++m) {
    const auto b = spline::reference::split::basis_point<T, T>(s, grid, i, static_cast<T>(x[m]));
    for (unsigned k = 0; k <= s.degree; ++k)
      for (std::size_t j = 0; j < s.out; ++j)
        values[m * s.out + j] += static_cast<double>(b.value[k]) * c[(b.span + k) * s.out + j];
  }
  return values;
}

KnotLine line_for_data(const spline::Shape& s, std::vector<double> values, const RefitOptions& o) {
  std::sort(values.begin(), values.end());
  double lo = values.front(), hi = values.back();
  const double size = std::max({std::abs(lo), std::abs(hi), 1e-3});
  if (hi - lo < 1e-6 * size) {  // a constant input: any grid around it
    const double middle = 0.5 * (lo + hi), reach = std::max(1.0, std::abs(middle)) * 0.5;
    return KnotLine::uniform(s.degree, s.grid, middle - reach, middle + reach);
  }
  const double margin = o.margin * (hi - lo);
  lo -= margin;
  hi += margin;
  if (s.knots == Knots::uniform) return KnotLine::uniform(s.degree, s.grid, lo, hi);
  std::vector<double> knots(s.grid + 1);
  const double n = static_cast<double>(values.size() - 1);
  for (std::size_t k = 0; k <= s.grid; ++k) {
    const double share = static_cast<double>(k) / s.grid, at = share * n;
    const auto left = static_cast<std::size_t>(at);
    const double right = values[std::min(left + 1, values.size() - 1)], weight = at - static_cast<double>(left);
    const double quantile = values[left] + (right - values[left]) * weight;
    knots[k] = o.uniform_share * (lo + (hi - lo) * share) + (1.0 - o.uniform_share) * quantile;
  }
  knots.front() = lo;
  knots.back() = hi;
  // Categorical columns put many quantiles on one value: push knots apart, first from the left, then from the right.
  const double gap = std::min(kSmallestGap, 0.5 / s.grid) * (hi - lo);
  for (std::size_t k = 1; k <= s.grid; ++k) knots[k] = std::max(knots[k], knots[k - 1] + gap);
  knots.back() = hi;
  for (std::size_t k = s.grid; k-- > 1;) knots[k] = std::min(knots[k], knots[k + 1] - gap);
  return KnotLine(s.degree, std::move(knots));
}

}  // namespace

template <class T>
Trained<T> refine(const Network<T>& network, std::span<const T> parameters, std::span<const T> buffers, unsigned grid) {
  NetworkOptions options = network.options();
  options.grid = grid;
  Trained<T> result{Network<T>(options), {}, {}};
  const Network<T>& to = result.network;
  result.parameters = Buffer<T>(to.parameters().flat_size());
  result.buffers = Buffer<T>(to.buffers().flat_size());
  copy_rest(network, parameters, buffers, to, result.parameters.span(), result.buffers.span());
  for (std::size_t l = 0; l < network.layers(); ++l) {
    const spline::Shape &s = network.shape(l), &t = to.shape(l);
    const T* weight = parameters.data() + network.parameters()[network.slices(l).weight].offset;
    T* new_weight = result.parameters.data() + to.parameters()[to.slices(l).weight].offset;
    const auto old_layer = network.layer(l, {parameters, buffers});
    for (std::size_t i = 0; i < s.in; ++i) {
      const KnotLine before = line_of(network, buffers, l, i);
      const KnotLine after = s.knots == Knots::free && grid >= s.grid
                                 ? split_widest(before, grid)
                                 : KnotLine::uniform(s.degree, grid, before.lo(), before.hi());
      const std::vector<double> c = coefficients_of(s, weight, i);
      std::vector<double> fitted(t.spline_rows() * t.out);
      if (nested(before, after)) {
        refine_nested(before, c, after, s.out, fitted);
      } else {
        const std::vector<double> x = fitting_points(after);
        fit_least_squares(after, x, old_values(s, old_layer.grid, i, c, x), s.out, FitGoal::reproduce, fitted);
      }
      store_coefficients(t, fitted, i, new_weight);
      store_line(to, result.buffers.span(), l, i, after);
    }
  }
  to.derive(result.buffers.span()).or_throw();
  return result;
}

template <class T>
Trained<T> refit(const Exec& ex, const Network<T>& network, std::span<const T> parameters, std::span<const T> buffers,
                 View<const T, 2> x, const RefitOptions& options) {
  Trained<T> result{network, Buffer<T>(parameters.size()), Buffer<T>(buffers.size())};
  std::copy(parameters.begin(), parameters.end(), result.parameters.data());
  std::copy(buffers.begin(), buffers.end(), result.buffers.data());
  const std::size_t samples = x.extent(0);
  auto tape = network.make_tape(ex, {.batch = samples, .backward = false});
  Buffer<T> y(samples * padded(network.output_width()));
  const View<T, 2> y_view(y.data(), {samples, network.output_width()}, {y.size() / samples, 1});
  RowBatch<T> batch;
  batch.size = samples;
  batch.x = x;
  for (std::size_t l = options.first_layer ? 0 : 1; l < network.layers(); ++l) {
    // Layers below have moved already: look at the values that really arrive here now.
    const ModelArrays<T> arrays{result.parameters, result.buffers};
    network.forward(ex, {.mode = Mode::evaluate}, arrays, batch, tape, y_view);
    const spline::Shape& s = network.shape(l);
    const auto old_layer = network.layer(l, {parameters, buffers});
    T* weight = result.parameters.data() + network.parameters()[network.slices(l).weight].offset;
    for (std::size_t i = 0; i < s.in; ++i) {
      std::vector<double> values(samples);
      for (std::size_t m = 0; m < samples; ++m) values[m] = static_cast<double>(network.layer_input(tape, l, m, i));
      const KnotLine after = line_for_data(s, values, options);
      const std::vector<double> c = coefficients_of(s, old_layer.weight, i);
      std::vector<double> fitted(s.spline_rows() * s.out);
      fit_least_squares(after, values, old_values(s, old_layer.grid, i, c, values), s.out, FitGoal::smooth, fitted);
      store_coefficients(s, fitted, i, weight);
      store_line(network, result.buffers.span(), l, i, after);
    }
    network.derive(result.buffers.span()).or_throw();
  }
  return result;
}

template Trained<float> refine(const Network<float>&, std::span<const float>, std::span<const float>, unsigned);
template Trained<double> refine(const Network<double>&, std::span<const double>, std::span<const double>, unsigned);
template Trained<float> refit(const Exec&, const Network<float>&, std::span<const float>, std::span<const float>,
                              View<const float, 2>, const RefitOptions&);
template Trained<double> refit(const Exec&, const Network<double>&, std::span<const double>, std::span<const double>,
                               View<const double, 2>, const RefitOptions&);

}  // namespace gradloom::kan
