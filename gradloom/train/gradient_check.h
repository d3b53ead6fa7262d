// Gradient check: is a model's backward pass the derivative of its forward pass? A feature for users and for our own
// tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/data/batch.h"
#include "gradloom/models/model.h"

namespace gradloom {

struct GradientCheckOptions {
  std::uint64_t seed = 0;
  double noise = 1.0;            // standard deviation of the noise that is added to the parameters before checking
  double input_noise = 0.0;      // the same for inputs: a maximum over equal inputs has no derivative
  double tolerance = 1e-6;       // largest error, relative to the largest element of the gradient
  double step = 1e-5;            // of the central differences; smaller where the function bends strongly
  std::size_t max_elements = 0;  // check at most this many parameters, drawn evenly from all; 0: every one
  bool inputs = true;            // check dl_dx too
};

// One element that failed.
struct GradientMismatch {
  std::string where;  // "layer0.weight[17]" or "input[3,1]"
  double analytic = 0.0, numeric = 0.0;
};

struct GradientCheckReport {
  bool passed = false;
  double max_relative_error = 0.0;
  std::size_t checked = 0;  // elements whose numeric derivative stands above the noise of the arithmetic
  std::size_t zero = 0;     // the others; both derivatives are zero as far as that noise allows to say
  std::size_t redrawn = 0;  // stencils that crossed a kink, or were too coarse, and were drawn again, smaller
  std::string reason;       // why it did not pass; empty when it did
  std::vector<GradientMismatch> mismatches;  // the worst few
};

// Collects pairs of derivatives and judges them; shared by all gradient checks.
class GradientJudge {
 public:
  // `what` the derivatives belong to, for messages: "the parameters".
  GradientJudge(double tolerance, double largest, std::string what)
      : tolerance_(tolerance), largest_(largest), what_(std::move(what)) {}
  // `noise`: how far rounding alone may move the numeric derivative.
  void compare(const std::string& where, double analytic, double numeric, double noise);
  void count_redrawn() { ++report_.redrawn; }
  // How far the two may be apart. Rounding is not the model's fault, but it must not hide an error either: it only
  // widens the tolerance by itself.
  double allowed(double noise) const { return tolerance_ * largest_ + noise; }
  GradientCheckReport finish();

 private:
  double tolerance_, largest_;
  std::string what_;
  GradientCheckReport report_;
};

// A numeric derivative that may fail: a function value and the signature of the branches it took.
struct BranchedValue {
  double value;
  std::uint64_t branches;
};

// The derivative of f at 0 by a difference of two values, and the step it took.
struct Difference {
  double value, step;
};

// Central difference with a step that shrinks while its ends lie on other branches than the middle. Where one end does
// so at every step, the middle lies on the edge of its branch: then a difference within that branch, of the same order.
// Counts redrawn stencils in the judge.
template <class F>
Difference difference(F&& f, const BranchedValue& middle, double step, GradientJudge& judge) {
  constexpr int kAttempts = 12;
  constexpr double kShrink = 0.4;
  const auto here = [&](const BranchedValue& v) { return v.branches == middle.branches; };
  Difference central{};
  double side = 0.0;  // on which the branch goes on
  double h = step;
  for (int attempt = 0; attempt < kAttempts; ++attempt, h *= kShrink) {
    const BranchedValue up = f(h), down = f(-h);
    central = {(up.value - down.value) / (2.0 * h), h};
    if (here(up) && here(down)) return central;
    side = here(up) ? 1.0 : here(down) ? -1.0 : 0.0;
    judge.count_redrawn();
  }
  h = step;
  for (int attempt = 0; side != 0.0 && attempt < kAttempts; ++attempt, h *= kShrink) {
    const BranchedValue near = f(side * h), far = f(side * 2.0 * h);
    if (here(near) && here(far)) return {side * (4.0 * near.value - 3.0 * middle.value - far.value) / (2.0 * h), h};
  }
  return central;
}

// Compares an element's derivative with differences of f, the function of what is added to the element. A function that
// bends strongly needs smaller steps: they shrink until both agree, the difference settles, or rounding (of f, in its
// own unit) would take a tenth of the tolerance.
template <class F, class Where>
void probe_element(GradientJudge& judge, F&& f, const BranchedValue& middle, double step, double rounding,
                   double analytic, Where&& where) {
  constexpr double kShrink = 0.2, kPart = 0.1;
  Difference now = difference(f, middle, step, judge);
  while (std::abs(analytic - now.value) > judge.allowed(rounding / now.step) &&
         rounding / (kShrink * now.step) <= kPart * judge.allowed(0.0)) {
    const Difference next = difference(f, middle, kShrink * now.step, judge);
    judge.count_redrawn();
    const bool settled = std::abs(next.value - now.value) <= kPart * judge.allowed(0.0);
    now = next;
    if (settled) break;
  }
  judge.compare(where(), analytic, now.value, rounding / now.step);
}

// Checks dl/dparameters and (for models on rows) dl/dx of l = sum r_bj y_bj with random r, at parameters + noise.
// `buffers` are used as they are. The model runs in double.
template <class M>
requires Model<M, double> GradientCheckReport check_gradient(const Exec& ex, const M& model,
                                                             const typename M::Batch& batch,
                                                             std::span<const double> parameters,
                                                             std::span<const double> buffers,
                                                             const GradientCheckOptions& options = {}) {
  const Slices& slices = model.parameters();
  Buffer<double> p(slices.flat_size()), b(buffers.size()), gradient(slices.flat_size());
  std::copy(buffers.begin(), buffers.end(), b.data());
  std::copy(parameters.begin(), parameters.end(), p.data());
  const RandomStream noise(options.seed, RandomUse::check, 0);
  for (const Slice& slice : slices)
    for_each_logical(slice,
                     [&](std::size_t i) { p[i] += options.noise * noise.normal(static_cast<std::uint32_t>(i)); });

  constexpr bool kHasInput = requires {
    typename M::Scalar;
    batch.x.extent(1);
  };
  bool inputs = false;
  std::size_t features = 0, input_rows = 0;
  if constexpr (kHasInput) {
    features = batch.x.extent(1);
    inputs = options.inputs && features > 0;
    // Rows of x are samples, unless the batch is of another kind (the nodes of graphs).
    input_rows = std::is_same_v<typename M::Batch, RowBatch<double>> ? batch.size : batch.x.extent(0);
  }
  const std::size_t out = model.output_width(), stride = padded(out);
  Buffer<double> y(batch.size * stride), dl_dy(batch.size * stride), x(input_rows * features),
      dl_dx(input_rows * features);
  typename M::Batch probe = batch;
  if constexpr (kHasInput) {
    for (std::size_t s = 0; s < input_rows; ++s)
      for (std::size_t i = 0; i < features; ++i) x[s * features + i] = batch.x(s, i);
    if (options.input_noise > 0) {
      const RandomStream jitter(options.seed, RandomUse::check, 4);
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] += options.input_noise * jitter.normal(static_cast<std::uint32_t>(i));
    }
    if (features > 0) probe.x = View<const double, 2>(x.data(), {input_rows, features});
  }
  const RandomStream random_direction(options.seed, RandomUse::check, 1);
  for (std::size_t s = 0; s < batch.size; ++s)
    for (std::size_t j = 0; j < out; ++j)
      dl_dy[s * stride + j] = random_direction.normal(static_cast<std::uint32_t>(s * out + j));

  auto tape =
      model.make_tape(ex, {.batch = std::max<std::size_t>(1, batch.size), .backward = true, .input_gradient = inputs});
  const Step step;
  const ModelArrays<double> arrays{p, b};
  const View<double, 2> y_view(y.data(), {batch.size, out}, {stride, 1});
  double magnitude = 0.0;
  const auto evaluate = [&]() -> BranchedValue {
    model.forward(ex, step, arrays, probe, tape, y_view);
    double sum = 0.0;
    magnitude = 0.0;
    for (std::size_t s = 0; s < batch.size; ++s)
      for (std::size_t j = 0; j < out; ++j) {
        const double term = dl_dy[s * stride + j] * y[s * stride + j];
        sum += term;
        magnitude += std::abs(term);
      }
    std::uint64_t branches = 0;
    if constexpr (HasBranches<M>) branches = model.branches(tape);
    return {sum, branches};
  };
  const BranchedValue middle = evaluate();
  const double rounding = 16 * std::numeric_limits<double>::epsilon() * magnitude;
  model.backward(ex, {.step = step,
                      .arrays = arrays,
                      .batch = probe,
                      .tape = tape,
                      .dl_dy = View<const double, 2>(dl_dy.data(), {batch.size, out}, {stride, 1}),
                      .gradient = gradient,
                      .dl_dx = inputs ? View<double, 2>(dl_dx.data(), {input_rows, features}) : View<double, 2>()});

  const auto largest = [](std::span<const double> v) {
    double m = 0.0;
    for (double e : v) m = std::max(m, std::abs(e));
    return m;
  };
  GradientJudge judge(options.tolerance, largest(gradient.span()), "the parameters");
  const auto probe_at = [&](GradientJudge& to, double& element, double analytic, auto&& where) {
    const double centre = element;
    const auto moved = [&](double h) {
      element = centre + h;
      return evaluate();
    };
    probe_element(to, moved, middle, options.step, rounding, analytic, where);
    element = centre;
  };
  const std::size_t total = slices.logical_size();
  const std::size_t every = options.max_elements == 0 ? 1 : (total + options.max_elements - 1) / options.max_elements;
  std::size_t counter = 0;
  for (const Slice& slice : slices)
    for_each_logical(slice, [&](std::size_t i) {
      if (counter++ % every != 0) return;
      probe_at(judge, p[i], gradient[i], [&] { return slice.name + "[" + std::to_string(i - slice.offset) + "]"; });
    });
  GradientCheckReport report = judge.finish();
  if (inputs) {
    GradientJudge input_judge(options.tolerance, largest(dl_dx.span()), "the inputs");
    const std::size_t skip =
        options.max_elements == 0 ? 1 : (dl_dx.size() + options.max_elements - 1) / options.max_elements;
    for (std::size_t i = 0; i < dl_dx.size(); i += std::max<std::size_t>(1, skip))
      probe_at(input_judge, x[i], dl_dx[i],
               [&] { return "input[" + std::to_string(i / features) + "," + std::to_string(i % features) + "]"; });
    const GradientCheckReport more = input_judge.finish();
    report.max_relative_error = std::max(report.max_relative_error, more.max_relative_error);
    report.checked += more.checked;
    report.zero += more.zero;
    report.redrawn += more.redrawn;
    report.mismatches.insert(report.mismatches.end(), more.mismatches.begin(), more.mismatches.end());
    if (!more.passed && report.passed) report.reason = more.reason;
    report.passed = report.passed && more.passed;
  }
  return report;
}

}  // namespace gradloom
