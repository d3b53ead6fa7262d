#include "gradloom/models/kan/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"

namespace gradloom::kan {

namespace spline = kernels::spline;

void validate(const NetworkOptions& o) {
  if (o.widths.size() < 2)
    throw_invalid(fmt::format("a spline network needs at least two widths, got {}", o.widths.size()));
  for (std::size_t i = 0; i < o.widths.size(); ++i)
    if (o.widths[i] == 0 || o.widths[i] > (1u << 24))
      throw_invalid(fmt::format("width {} of the spline network is {}; it must be 1 to {}", i, o.widths[i], 1u << 24));
  if (!o.multiply.empty() && o.multiply.size() != o.widths.size() - 2)
    throw_invalid(fmt::format("model.multiply has {} numbers; it needs one for each of the {} hidden layers, or none",
                              o.multiply.size(), o.widths.size() - 2));
  for (std::size_t l = 0; l < o.multiply.size(); ++l)
    if (o.multiply[l] > o.widths[l + 1])
      throw_invalid(
          fmt::format("model.multiply asks for {} multiplication nodes in hidden layer {}, which has {} nodes",
                      o.multiply[l], l + 1, o.widths[l + 1]));
  if (o.grid < 1 || o.grid > spline::kMaxGrid)
    throw_invalid(fmt::format("grid is {} intervals; it must be 1 to {}", o.grid, spline::kMaxGrid));
  if (o.degree < 1 || o.degree > spline::kMaxDegree)
    throw_invalid(fmt::format("degree is {}; it must be 1 to {}", o.degree, spline::kMaxDegree));
  if (!(std::isfinite(o.lo) && std::isfinite(o.hi) && o.lo < o.hi))
    throw_invalid(fmt::format("the grid reaches from {} to {}; its width must be positive and finite", o.lo, o.hi));
  if (!(std::isfinite(o.spline_noise) && o.spline_noise >= 0 && std::isfinite(o.base_scale) && o.base_scale >= 0))
    throw_invalid("spline_noise and base_scale must be finite and not negative");
}

template <class T>
Network<T>::Network(NetworkOptions options) : options_(std::move(options)) {
  validate(options_);
  const std::size_t in = input_width(), out = output_width();
  affine_.input_mean = buffers_.add("input.mean", {in}, padded(in));
  affine_.input_std = buffers_.add("input.std", {in}, padded(in));
  affine_.input_scale = buffers_.add("input.scale", {in}, padded(in), false);
  affine_.output_mean = buffers_.add("output.mean", {out}, padded(out));
  affine_.output_std = buffers_.add("output.std", {out}, padded(out));
  for (std::size_t l = 0; l + 1 < options_.widths.size(); ++l) {
    spline::Shape s;
    s.in = options_.widths[l];
    s.out = nodes(l).sums();
    s.grid = options_.grid;
    s.degree = options_.degree;
    s.base = options_.base;
    s.bias = options_.bias;
    s.outside = options_.outside;
    s.knots = options_.knots;
    shapes_.push_back(s);
    const std::string name = fmt::format("layer{}.", l);
    LayerSlices at{};
    at.weight = parameters_.add(name + "weight", {s.in, s.rows(), s.out}, s.out_padded());
    if (s.bias) at.bias = parameters_.add(name + "bias", {s.out}, s.out_padded());
    at.lo = buffers_.add(name + "lo", {s.in}, s.in_padded());
    at.hi = buffers_.add(name + "hi", {s.in}, s.in_padded());
    at.inverse_step = buffers_.add(name + "inverse_step", {s.in}, s.in_padded(), false);
    if (s.knots == Knots::free) {
      at.knots = buffers_.add(name + "knots", {s.in, s.grid + std::size_t{1}});
      at.extended = buffers_.add(name + "extended", {s.in, s.extended_knots()}, 0, false);
      at.inverse = buffers_.add(name + "inverse", {s.in, s.degree, s.extended_knots()}, 0, false);
    }
    slices_.push_back(at);
  }
}

template <class T>
void Network<T>::initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const {
  std::fill(parameters.begin(), parameters.end(), T(0));
  std::fill(buffers.begin(), buffers.end(), T(0));
  const auto set = [&](std::size_t slice, double value) {
    for_each_logical(buffers_[slice], [&](std::size_t at) { buffers[at] = static_cast<T>(value); });
  };
  set(affine_.input_std, 1.0);
  set(affine_.output_std, 1.0);
  for (std::size_t l = 0; l < layers(); ++l) {
    const spline::Shape& s = shapes_[l];
    const double scale = 1.0 / std::sqrt(static_cast<double>(s.in));
    T* weight = parameters.data() + parameters_[slices_[l].weight].offset;
    for (std::size_t i = 0; i < s.in; ++i) {
      const RandomStream stream(seed, RandomUse::initialise, static_cast<std::uint32_t>(l),
                                static_cast<std::uint32_t>(i));
      for (std::size_t r = 0; r < s.rows(); ++r) {
        const bool base_row = s.base && r == s.rows() - 1;
        const double weight_std = scale * (base_row ? options_.base_scale : options_.spline_noise);
        for (std::size_t j = 0; j < s.out; ++j)
          weight[(i * s.rows() + r) * s.out_padded() + j] =
              static_cast<T>(weight_std * stream.normal(static_cast<std::uint32_t>(r * s.out + j)));
      }
    }
    set(slices_[l].lo, options_.lo);
    set(slices_[l].hi, options_.hi);
    if (s.knots == Knots::free) {
      const double h = (options_.hi - options_.lo) / s.grid;
      T* knots = buffers.data() + buffers_[slices_[l].knots].offset;
      for (std::size_t i = 0; i < s.in; ++i)
        for (std::size_t k = 0; k <= s.grid; ++k)
          knots[i * (s.grid + 1) + k] =
              static_cast<T>(k == s.grid ? options_.hi : options_.lo + h * static_cast<double>(k));
    }
  }
  derive(buffers).or_throw();
}

template <class T>
Result<void> Network<T>::derive(std::span<T> buffers) const {
  const auto at = [&](std::size_t slice) { return buffers.data() + buffers_[slice].offset; };
  for (std::size_t i = 0; i < input_width(); ++i) {
    const T mean = at(affine_.input_mean)[i], std = at(affine_.input_std)[i];
    if (!(std::isfinite(mean) && std::isfinite(std) && std > 0))
      return Error{
          ErrorCode::invalid_input,
          fmt::format("input {} is normalised with mean {} and standard deviation {}; both must be finite, and the "
                      "standard deviation positive",
                      i, mean, std)};
    at(affine_.input_scale)[i] = T(1) / std;
  }
  for (std::size_t j = 0; j < output_width(); ++j)
    if (!(std::isfinite(at(affine_.output_mean)[j]) && std::isfinite(at(affine_.output_std)[j]) &&
          at(affine_.output_std)[j] > 0))
      return Error{ErrorCode::invalid_input, fmt::format("output {} has a mean or standard deviation that is not "
                                                         "finite, or a standard deviation that is not positive",
                                                         j)};
  for (std::size_t l = 0; l < layers(); ++l) {
    const spline::Shape& s = shapes_[l];
    const LayerSlices& slices = slices_[l];
    const std::size_t extended = s.extended_knots(), p = s.degree;
    for (std::size_t i = 0; i < s.in; ++i) {
      T& lo = at(slices.lo)[i];
      T& hi = at(slices.hi)[i];
      if (s.knots == Knots::free) {
        const T* knots = at(slices.knots) + i * (s.grid + 1);
        for (std::size_t k = 0; k <= s.grid; ++k)
          if (!std::isfinite(knots[k]) || (k > 0 && !(knots[k] > knots[k - 1])))
            return Error{ErrorCode::invalid_input,
                         fmt::format("knot {} of input {} in layer {} is {}; knots must be finite and increasing", k, i,
                                     l, knots[k])};
        lo = knots[0];
        hi = knots[s.grid];
        T* t = at(slices.extended) + i * extended;
        const T first = knots[1] - knots[0], last = knots[s.grid] - knots[s.grid - 1];
        for (std::size_t k = 0; k < extended; ++k) {
          if (k < 2 * p)
            t[k] = lo - first * static_cast<T>(2 * p - k);
          else if (k <= 2 * p + s.grid)
            t[k] = knots[k - 2 * p];
          else
            t[k] = hi + last * static_cast<T>(k - 2 * p - s.grid);
        }
        T* inverse = at(slices.inverse) + i * p * extended;
        for (std::size_t d = 1; d <= p; ++d)
          for (std::size_t m = 0; m < extended; ++m)
            inverse[(d - 1) * extended + m] = m + d < extended ? T(1) / (t[m + d] - t[m]) : T(0);
      }
      // Free knots go on beyond both ends.
      const T* t = s.knots == Knots::free ? at(slices.extended) + i * extended : nullptr;
      const T width = t ? t[extended - 1] - t[0] : hi - lo;
      if (!(std::isfinite(width) && lo < hi))
        return Error{ErrorCode::invalid_input,
                     fmt::format("the grid of input {} in layer {} reaches from {} to {}; its width must be positive, "
                                 "and a number of {}",
                                 i, l, lo, hi, sizeof(T) == 4 ? "float32" : "float64")};
      at(slices.inverse_step)[i] = static_cast<T>(s.grid) / (hi - lo);
      if (!std::isfinite(at(slices.inverse_step)[i]))
        return Error{ErrorCode::invalid_input, fmt::format("the grid of input {} in layer {} is too narrow", i, l)};
    }
  }
  return {};
}

template <class T>
spline::Layer<T> Network<T>::layer(std::size_t l, const ModelArrays<T>& arrays) const {
  const LayerSlices& at = slices_[l];
  const T* p = arrays.parameters.data();
  const T* b = arrays.buffers.data();
  spline::Layer<T> layer;
  layer.shape = shapes_[l];
  layer.weight = p + parameters_[at.weight].offset;
  if (layer.shape.bias) layer.bias = p + parameters_[at.bias].offset;
  layer.grid.lo = b + buffers_[at.lo].offset;
  layer.grid.hi = b + buffers_[at.hi].offset;
  layer.grid.inverse_step = b + buffers_[at.inverse_step].offset;
  if (layer.shape.knots == Knots::free) {
    layer.grid.extended = b + buffers_[at.extended].offset;
    layer.grid.inverse = b + buffers_[at.inverse].offset;
  }
  return layer;
}

template class Network<float>;
template class Network<double>;

}  // namespace gradloom::kan
