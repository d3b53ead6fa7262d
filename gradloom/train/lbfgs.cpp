#include "gradloom/train/lbfgs.h"

#include <algorithm>
#include <cmath>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

constexpr double kSufficientDecrease = 1e-4;
constexpr double kCurvature = 0.9;
constexpr double kLargestStep = 1e10;
constexpr double kSmallestCurvature = 1e-32;  // fits to 1e-10 have curvatures far below 1

template <class T>
void copy(std::span<const T> from, std::span<T> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

// A point of the line search: the step length, the loss and its slope along the direction.
struct Point {
  double t, loss, slope;
};

// The minimum of the cubic through two points with their slopes, kept inside [lo, hi]; the middle when there is none.
double cubic_minimum(const Point& a, const Point& b, double lo, double hi) {
  const double d1 = a.slope + b.slope - 3.0 * (a.loss - b.loss) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0.0)) return 0.5 * (lo + hi);
  const double d2 = a.t <= b.t ? std::sqrt(square) : -std::sqrt(square);
  const double t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2));
  return std::isfinite(t) ? std::clamp(t, lo, hi) : 0.5 * (lo + hi);
}

}  // namespace

template <class T>
Lbfgs<T>::Lbfgs(const Exec& ex, const OptimizerOptions& options, std::size_t size, LbfgsHistory<T>& history)
    : ex_(ex),
      options_(options),
      history_(history),
      inverse_products_(options.history),
      alpha_(options.history),
      direction_(size),
      start_x_(size),
      start_g_(size),
      low_g_(size),
      scratch_(kernels::reduce::reduce_scratch(size)) {
  validate(options);
  while (history_.steps.size() < options.history) history_.steps.emplace_back(size);
  while (history_.differences.size() < options.history) history_.differences.emplace_back(size);
  bool matches = history_.steps.size() == options.history && history_.count <= options.history;
  for (unsigned i = 0; matches && i < options.history; ++i)
    matches = history_.steps[i].size() == size && history_.differences[i].size() == size;
  if (!matches) throw_invalid("the saved L-BFGS history is of another model, or of another optimizer.history");
  for (std::size_t pair = 0; pair < history_.count; ++pair) {
    const std::size_t at = slot(pair);
    inverse_products_[at] = 1.0 / dot(history_.steps[at].span(), history_.differences[at].span());
  }
}

template <class T>
void Lbfgs<T>::reset() {
  history_.first = history_.count = 0;
}

template <class T>
void Lbfgs<T>::remember(std::span<const T> step, std::span<const T> difference) {
  const double product = dot(step, difference);
  // Without positive curvature the pair would make the approximation indefinite.
  if (!(product > kSmallestCurvature) || !std::isfinite(product)) return;
  if (history_.count == history_.steps.size()) {
    history_.first = slot(1);
    --history_.count;
  }
  const std::size_t at = slot(history_.count);
  std::copy(step.begin(), step.end(), history_.steps[at].span().begin());
  std::copy(difference.begin(), difference.end(), history_.differences[at].span().begin());
  inverse_products_[at] = 1.0 / product;
  ++history_.count;
}

// direction_ = -H g by the two-loop recursion.
template <class T>
void Lbfgs<T>::direction(std::span<const T> gradient) {
  const std::span<T> d = direction_.span();
  copy(gradient, d);
  kernels::reduce::scale<T>(ex_, T(-1), d);
  for (std::size_t pair = history_.count; pair-- > 0;) {
    const std::size_t at = slot(pair);
    alpha_[pair] = inverse_products_[at] * dot(history_.steps[at].span(), d);
    kernels::reduce::axpy<T>(ex_, static_cast<T>(-alpha_[pair]), history_.differences[at].span(), d);
  }
  if (history_.count > 0) {
    const std::size_t at = slot(history_.count - 1);
    const auto difference = std::span<const T>(history_.differences[at].span());
    const double squares = dot(difference, difference);
    kernels::reduce::scale<T>(ex_, static_cast<T>(1.0 / (inverse_products_[at] * squares)), d);
  }
  for (std::size_t pair = 0; pair < history_.count; ++pair) {
    const std::size_t at = slot(pair);
    const double beta = inverse_products_[at] * dot(history_.differences[at].span(), d);
    kernels::reduce::axpy<T>(ex_, static_cast<T>(alpha_[pair] - beta), history_.steps[at].span(), d);
  }
}

// From start_x_ with gradient start_g_ along direction_: a point that satisfies the strong Wolfe conditions, or the
// best one that the budget allowed. On success x and g are that point's; on failure they are the start's.
template <class T>
typename Lbfgs<T>::SearchResult Lbfgs<T>::search(Evaluate evaluate, std::span<T> x, std::span<T> g, double loss,
                                                 double slope, double start, unsigned budget, unsigned& used) {
  const Point origin{0.0, loss, slope};
  const auto probe = [&](double t) {
    copy<T>(start_x_.span(), x);
    kernels::reduce::axpy<T>(ex_, static_cast<T>(t), direction_.span(), x);
    ++used;
    const double value = evaluate(x, g);
    return Point{t, value, dot(g, direction_.span())};
  };
  const auto keep = [&] { std::copy(g.begin(), g.end(), low_g_.span().begin()); };
  const auto finite = [](const Point& p) { return std::isfinite(p.loss) && std::isfinite(p.slope); };

  // low is always the best point so far, its gradient in low_g_.
  Point low = origin, high = origin;
  std::copy(start_g_.span().begin(), start_g_.span().end(), low_g_.span().begin());
  bool bracketed = false, done = false;
  Point previous = origin;
  double t = start;
  unsigned tries = 0;
  while (tries < budget && !bracketed && !done) {
    const Point now = probe(t);
    ++tries;
    if (!finite(now)) {
      high = {t, INFINITY, 0.0};
      bracketed = true;
    } else if (now.loss > loss + kSufficientDecrease * t * slope || (tries > 1 && now.loss >= previous.loss)) {
      high = now;
      bracketed = true;
    } else if (std::abs(now.slope) <= -kCurvature * slope) {
      low = now;
      keep();
      done = true;
    } else if (now.slope >= 0) {
      high = low;
      low = now;
      keep();
      bracketed = true;
    } else {
      low = now;
      keep();
      const double next = cubic_minimum(previous, now, now.t + 0.01 * (now.t - previous.t), now.t * 10.0);
      previous = now;
      t = std::min(next, kLargestStep);
    }
  }
  while (tries < budget && bracketed && !done) {
    const double width = std::abs(high.t - low.t);
    if (width * std::abs(slope) < 1e-32 || width == 0.0) break;
    const double left = std::min(low.t, high.t), right = std::max(low.t, high.t);
    t = std::isfinite(high.loss) ? cubic_minimum(low, high, left, right) : 0.5 * (left + right);
    // A point too close to an end would not shrink the bracket.
    t = std::clamp(t, left + 0.1 * width, right - 0.1 * width);
    const Point now = probe(t);
    ++tries;
    if (!finite(now) || now.loss > loss + kSufficientDecrease * t * slope || now.loss >= low.loss) {
      high = finite(now) ? now : Point{t, INFINITY, 0.0};
      continue;
    }
    if (std::abs(now.slope) <= -kCurvature * slope)
      done = true;
    else if (now.slope * (high.t - low.t) >= 0)
      high = low;
    low = now;
    keep();
  }
  copy<T>(start_x_.span(), x);
  if (low.t > 0.0) kernels::reduce::axpy<T>(ex_, static_cast<T>(low.t), direction_.span(), x);
  std::copy(low_g_.span().begin(), low_g_.span().end(), g.begin());
  return {low.t > 0.0 && low.loss < loss, low.loss};
}

template <class T>
LbfgsReport Lbfgs<T>::step(Evaluate evaluate, std::span<T> x, std::span<T> g) {
  LbfgsReport report;
  report.loss = evaluate(x, g);
  report.evaluations = 1;
  if (!std::isfinite(report.loss)) return report;
  while (report.iterations < options_.iterations && report.evaluations < options_.evaluations) {
    direction(g);
    double slope = dot(g, direction_.span());
    if (!(slope < 0.0) && history_.count > 0) {
      reset();
      direction(g);
      slope = dot(g, direction_.span());
    }
    if (!(slope < 0.0)) {  // the gradient is zero
      report.stalled = true;
      break;
    }
    const double size = std::sqrt(-slope);
    const double start = history_.count == 0 ? std::min(1.0, 1.0 / size) * options_.lr : options_.lr;
    std::copy(x.begin(), x.end(), start_x_.span().begin());
    std::copy(g.begin(), g.end(), start_g_.span().begin());
    const SearchResult found = search(evaluate, x, g, report.loss, slope, start,
                                      options_.evaluations - report.evaluations, report.evaluations);
    ++report.iterations;
    if (!found.ok) {
      if (report.evaluations >= options_.evaluations) break;  // out of budget, not out of luck
      if (history_.count == 0) {
        report.stalled = true;
        break;
      }
      reset();
      continue;
    }
    report.loss = found.loss;
    // start_x_ and start_g_ become the step and the difference of gradients.
    kernels::reduce::axpy<T>(ex_, T(-1), x, start_x_.span());
    kernels::reduce::scale<T>(ex_, T(-1), start_x_.span());
    kernels::reduce::axpy<T>(ex_, T(-1), g, start_g_.span());
    kernels::reduce::scale<T>(ex_, T(-1), start_g_.span());
    remember(start_x_.span(), start_g_.span());
  }
  return report;
}

template class Lbfgs<float>;
template class Lbfgs<double>;

}  // namespace gradloom
