// Gradient check: is a model's backward pass the derivative of its forward pass? A feature for users and for our own
// tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/data/batch.h"
#include "gradloom/io/fields.h"
#include "gradloom/models/model.h"
#include "gradloom/models/penalty.h"

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
  GRADLOOM_FIELDS(where, analytic, numeric)
};

struct GradientCheckReport {
  bool passed = false;
  double max_relative_error = 0.0;
  std::size_t checked = 0;  // elements whose numeric derivative stands above the noise of the arithmetic
  std::size_t zero = 0;     // the others; both derivatives are zero as far as that noise allows to say
  std::size_t redrawn = 0;  // stencils that crossed a kink, or were too coarse, and were drawn again, smaller
  std::string reason;       // why it did not pass; empty when it did
  std::vector<GradientMismatch> mismatches;  // the worst few

  // The report of both; the reason is that of the first that failed.
  void add(const GradientCheckReport& more);
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

// A model in double at parameters + noise, with memory of its own, and l = sum r_bj y_bj with random r.
template <class M>
class GradientProbe {
 public:
  GradientProbe(const Exec& ex, const M& model, const typename M::Batch& batch, const ModelArrays<double>& arrays,
                const GradientCheckOptions& options)
      : ex_(ex),
        model_(model),
        options_(options),
        batch_(batch),
        out_(model.output_width()),
        stride_(padded(out_)),
        parameters_(model.parameters().flat_size()),
        buffers_(arrays.buffers.size()),
        gradient_(parameters_.size()),
        y_(batch.size * stride_),
        dl_dy_(batch.size * stride_) {
    std::copy(arrays.buffers.begin(), arrays.buffers.end(), buffers_.data());
    std::copy(arrays.parameters.begin(), arrays.parameters.end(), parameters_.data());
    const RandomStream noise(options.seed, RandomUse::check, 0);
    for (const Slice& slice : model.parameters())
      for_each_logical(
          slice, [&](std::size_t i) { parameters_[i] += options.noise * noise.normal(static_cast<std::uint32_t>(i)); });
    if constexpr (kHasInput) copy_inputs(batch);
    const RandomStream random_direction(options.seed, RandomUse::check, 1);
    for (std::size_t s = 0; s < batch.size; ++s)
      for (std::size_t j = 0; j < out_; ++j)
        dl_dy_[s * stride_ + j] = random_direction.normal(static_cast<std::uint32_t>(s * out_ + j));
    tape_.emplace(model.make_tape(
        ex, {.batch = std::max<std::size_t>(1, batch.size), .backward = true, .input_gradient = has_inputs()}));
    differentiate();
  }

  bool has_inputs() const { return options_.inputs && features_ > 0; }

  GradientCheckReport check_parameters() {
    GradientJudge judge(options_.tolerance, largest(gradient_.span()), "the parameters");
    const std::size_t every = every_of(model_.parameters().logical_size());
    std::size_t counter = 0;
    for (const Slice& slice : model_.parameters())
      for_each_logical(slice, [&](std::size_t i) {
        if (counter++ % every != 0) return;
        probe(judge, parameters_[i], gradient_[i],
              [&] { return slice.name + "[" + std::to_string(i - slice.offset) + "]"; });
      });
    return judge.finish();
  }

  GradientCheckReport check_inputs() {
    GradientJudge judge(options_.tolerance, largest(dl_dx_.span()), "the inputs");
    for (std::size_t i = 0; i < dl_dx_.size(); i += every_of(dl_dx_.size()))
      probe(judge, x_[i], dl_dx_[i],
            [&] { return "input[" + std::to_string(i / features_) + "," + std::to_string(i % features_) + "]"; });
    return judge.finish();
  }

 private:
  static constexpr bool kHasInput = requires(const typename M::Batch& b) { b.x.extent(1); };

  void copy_inputs(const typename M::Batch& batch) {
    features_ = batch.x.extent(1);
    // Rows of x are samples, unless the batch is of another kind (the nodes of graphs).
    const std::size_t rows = std::is_same_v<typename M::Batch, RowBatch<double>> ? batch.size : batch.x.extent(0);
    x_ = Buffer<double>(rows * features_), dl_dx_ = Buffer<double>(rows * features_);
    for (std::size_t s = 0; s < rows; ++s)
      for (std::size_t i = 0; i < features_; ++i) x_[s * features_ + i] = batch.x(s, i);
    if (options_.input_noise > 0) {
      const RandomStream jitter(options_.seed, RandomUse::check, 4);
      for (std::size_t i = 0; i < x_.size(); ++i)
        x_[i] += options_.input_noise * jitter.normal(static_cast<std::uint32_t>(i));
    }
    if (features_ > 0) batch_.x = View<const double, 2>(x_.data(), {rows, features_});
  }

  BranchedValue evaluate() {
    model_.forward(ex_, {}, {parameters_, buffers_}, batch_, *tape_, {y_.data(), {batch_.size, out_}, {stride_, 1}});
    double sum = 0.0;
    magnitude_ = 0.0;
    for (std::size_t s = 0; s < batch_.size; ++s)
      for (std::size_t j = 0; j < out_; ++j) {
        const double term = dl_dy_[s * stride_ + j] * y_[s * stride_ + j];
        sum += term;
        magnitude_ += std::abs(term);
      }
    if constexpr (HasPenalty<M>) {
      const double penalty = model_.penalty(ex_, parameters_.span(), *tape_);
      sum += penalty;
      magnitude_ += std::abs(penalty);
    }
    std::uint64_t branches = 0;
    if constexpr (HasBranches<M>) branches = model_.branches(*tape_);
    return {sum, branches};
  }

  void differentiate() {
    middle_ = evaluate();
    rounding_ = 16 * std::numeric_limits<double>::epsilon() * magnitude_;
    View<double, 2> dl_dx;
    if (has_inputs()) dl_dx = View<double, 2>(dl_dx_.data(), {dl_dx_.size() / features_, features_});
    Buffer<double> levels = gradient_levels(model_, batch_);
    model_.backward(ex_, {.arrays = {parameters_, buffers_},
                          .batch = batch_,
                          .tape = *tape_,
                          .dl_dy = View<const double, 2>(dl_dy_.data(), {batch_.size, out_}, {stride_, 1}),
                          .gradient = gradient_,
                          .dl_dx = dl_dx,
                          .levels = levels});
  }

  template <class F>
  void probe(GradientJudge& judge, double& element, double analytic, F&& where) {
    const double centre = element;
    const auto moved = [&](double h) {
      element = centre + h;
      return evaluate();
    };
    probe_element(judge, moved, middle_, options_.step, rounding_, analytic, where);
    element = centre;
  }

  std::size_t every_of(std::size_t elements) const {
    return options_.max_elements == 0 ? 1 : std::max<std::size_t>(1, divide_up(elements, options_.max_elements));
  }
  static double largest(std::span<const double> v) {
    double m = 0.0;
    for (double e : v) m = std::max(m, std::abs(e));
    return m;
  }

  const Exec& ex_;
  const M& model_;
  const GradientCheckOptions& options_;
  typename M::Batch batch_;
  std::size_t out_, stride_, features_ = 0;
  Buffer<double> parameters_, buffers_, gradient_, y_, dl_dy_, x_, dl_dx_;
  std::optional<typename M::Tape> tape_;
  BranchedValue middle_{};
  double magnitude_ = 0.0, rounding_ = 0.0;
};

// Checks dl/dparameters and (for models on rows) dl/dx of l = sum r_bj y_bj with random r, at parameters + noise.
// `buffers` are used as they are. The model runs in double.
template <class M>
requires Model<M, double> GradientCheckReport check_gradient(const Exec& ex, const M& model,
                                                             const typename M::Batch& batch,
                                                             std::span<const double> parameters,
                                                             std::span<const double> buffers,
                                                             const GradientCheckOptions& options = {}) {
  GradientProbe<M> probe(ex, model, batch, {parameters, buffers}, options);
  GradientCheckReport report = probe.check_parameters();
  if (probe.has_inputs()) report.add(probe.check_inputs());
  return report;
}

}  // namespace gradloom
