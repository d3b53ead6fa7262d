#include "gradloom/train/gradient_check.h"

#include <gmock/gmock.h>

#include <cmath>

#include "gradloom/data/batch.h"

namespace gradloom {
namespace {

enum class Defect { none, sign, factor, zero, missing_term, swapped_index, wrong_input, nan };

// y_j = sum_i w_ij x_i + v_j x_0^2, with a backward pass that can be broken on purpose.
struct Probe {
  using Scalar = double;
  using Batch = RowBatch<double>;
  struct Tape {};
  static constexpr std::size_t kIn = 3, kOut = 2;
  Slices parameters_{sizeof(double)}, buffers_{sizeof(double)};
  Defect defect;

  explicit Probe(Defect d) : defect(d) {
    parameters_.add("w", {kIn, kOut});
    parameters_.add("v", {kOut});
  }
  const Slices& parameters() const { return parameters_; }
  const Slices& buffers() const { return buffers_; }
  std::size_t output_width() const { return kOut; }
  void initialise(std::uint64_t, std::span<double>, std::span<double>) const {}
  Tape make_tape(const Exec&, const TapeLimits&) const { return {}; }
  void forward(const Exec&, const Step&, const ModelArrays<double>& a, const Batch& b, Tape&, View<double, 2> y) const {
    const double* w = a.parameters.data() + parameters_[0].offset;
    const double* v = a.parameters.data() + parameters_[1].offset;
    for (std::size_t s = 0; s < b.size; ++s)
      for (std::size_t j = 0; j < kOut; ++j) {
        y(s, j) = v[j] * b.x(s, 0) * b.x(s, 0);
        for (std::size_t i = 0; i < kIn; ++i) y(s, j) += w[i * kOut + j] * b.x(s, i);
      }
  }
  void backward(const Exec&, const BackwardCall<double, Batch, Tape>& call) const {
    const Batch& b = call.batch;
    const View<const double, 2> dl_dy = call.dl_dy;
    const View<double, 2> dl_dx = call.dl_dx;
    const std::span<double> gradient = call.gradient;
    const double* w = call.arrays.parameters.data() + parameters_[0].offset;
    const double* v = call.arrays.parameters.data() + parameters_[1].offset;
    double* dw = gradient.data() + parameters_[0].offset;
    double* dv = gradient.data() + parameters_[1].offset;
    std::fill_n(gradient.data(), gradient.size(), 0.0);
    for (std::size_t s = 0; s < b.size; ++s)
      for (std::size_t j = 0; j < kOut; ++j) {
        for (std::size_t i = 0; i < kIn; ++i) {
          const std::size_t from = defect == Defect::swapped_index ? kIn - 1 - i : i;
          dw[i * kOut + j] += dl_dy(s, j) * b.x(s, from);
        }
        dv[j] += dl_dy(s, j) * b.x(s, 0) * b.x(s, 0) * (defect == Defect::factor ? 1.001 : 1.0);
      }
    if (defect == Defect::sign) dw[0] = -dw[0];
    if (defect == Defect::zero) std::fill_n(gradient.data(), gradient.size(), 0.0);
    if (defect == Defect::nan) dw[1] = NAN;
    if (dl_dx.empty()) return;
    for (std::size_t s = 0; s < b.size; ++s)
      for (std::size_t i = 0; i < kIn; ++i) {
        dl_dx(s, i) = 0.0;
        for (std::size_t j = 0; j < kOut; ++j) {
          dl_dx(s, i) += dl_dy(s, j) * w[i * kOut + j];
          if (i == 0 && defect != Defect::missing_term) dl_dx(s, i) += dl_dy(s, j) * 2 * v[j] * b.x(s, 0);
        }
        if (defect == Defect::wrong_input && i == 2) dl_dx(s, i) *= 0.99;
      }
  }
};
static_assert(Model<Probe, double>);

GradientCheckReport check(Defect defect) {
  const Probe probe(defect);
  std::vector<double> x(5 * Probe::kIn), parameters(probe.parameters().flat_size());
  const RandomStream r(3, RandomUse::user);
  for (std::uint32_t i = 0; i < x.size(); ++i) x[i] = r.normal(i);
  RowBatch<double> batch;
  batch.size = 5;
  batch.x = {x.data(), {5, Probe::kIn}};
  return check_gradient(Exec({.threads = 1}), probe, batch, parameters, {});
}

TEST(GradientCheck, AcceptsARightGradient) {
  const GradientCheckReport report = check(Defect::none);
  EXPECT_TRUE(report.passed) << report.reason;
  EXPECT_EQ(report.checked, 8u + 15u);
  EXPECT_EQ(report.zero, 0u);
  EXPECT_LT(report.max_relative_error, 1e-8);
}

TEST(GradientCheck, RejectsEveryWrongGradient) {
  for (Defect d : {Defect::sign, Defect::factor, Defect::zero, Defect::missing_term, Defect::swapped_index,
                   Defect::wrong_input, Defect::nan}) {
    const GradientCheckReport report = check(d);
    EXPECT_FALSE(report.passed) << "defect " << static_cast<int>(d);
    EXPECT_FALSE(report.reason.empty());
  }
}

TEST(GradientCheck, NamesTheWorstElement) {
  EXPECT_THAT(check(Defect::sign).reason, ::testing::StartsWith("w[0]"));
  EXPECT_THAT(check(Defect::wrong_input).reason, ::testing::HasSubstr("input["));
}

// A derivative that bends so strongly that a step of 1e-5 is far too coarse, right and wrong by a part in 10,000.
TEST(GradientCheck, TakesSmallerStepsWhereAFunctionBendsStrongly) {
  const auto f = [](double h) { return BranchedValue{std::sin(2e4 * h), 0}; };
  for (const bool right : {true, false}) {
    GradientJudge judge(1e-6, 2e4, "it");
    probe_element(judge, f, f(0.0), 1e-5, 16 * std::numeric_limits<double>::epsilon(), right ? 2e4 : 2e4 * 1.0001,
                  [] { return std::string("sine"); });
    const GradientCheckReport report = judge.finish();
    EXPECT_EQ(report.passed, right) << report.reason;
    EXPECT_GT(report.redrawn, 0u);
  }
}

// At the edge of a branch the derivative is that of the branch on which the point lies.
TEST(GradientCheck, StaysOnTheBranchOfAPointAtItsEdge) {
  const auto f = [](double h) { return h > 0 ? BranchedValue{7.0 - h, 1} : BranchedValue{3.0 * h + h * h, 0}; };
  for (const double claimed : {3.0, -1.0, 1.0}) {
    GradientJudge judge(1e-6, 3.0, "it");
    probe_element(judge, f, f(0.0), 1e-5, 16 * std::numeric_limits<double>::epsilon(), claimed,
                  [] { return std::string("edge"); });
    EXPECT_EQ(judge.finish().passed, claimed == 3.0) << claimed;
  }
}

TEST(GradientCheck, RejectsAGradientThatIsTrulyZero) {
  const Probe probe(Defect::none);
  std::vector<double> x(Probe::kIn, 0.0), parameters(probe.parameters().flat_size());
  RowBatch<double> batch;
  batch.size = 1;
  batch.x = {x.data(), {1, Probe::kIn}};
  const auto report = check_gradient(Exec({.threads = 1}), probe, batch, parameters, {}, {.inputs = false});
  EXPECT_FALSE(report.passed);
  EXPECT_THAT(report.reason, ::testing::HasSubstr("zero"));
}

}  // namespace
}  // namespace gradloom
