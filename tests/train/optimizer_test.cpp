#include "gradloom/train/optimizer.h"

#include <gmock/gmock.h>

#include <cmath>

#include "gradloom/base/error.h"
#include "gradloom/base/random.h"
#include "gradloom/train/lbfgs.h"
#include "gradloom/train/schedule.h"

namespace gradloom {
namespace {

TEST(Optimizer, AdamFollowsItsDefinition) {
  OptimizerOptions o{.kind = OptimizerKind::adam, .lr = 0.1};
  std::vector<OptimizerState<double>> state;
  ElementOptimizer<double> adam(o, 1, state);
  double p = 1.0, m = 0.0, v = 0.0;
  std::vector<double> parameter{1.0}, gradient{0.0};
  for (int step = 0; step < 20; ++step) {
    gradient[0] = 2 * parameter[0] + 0.3;
    const double g = 2 * p + 0.3;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    p -= 0.1 * (m / (1 - std::pow(0.9, step + 1))) / (std::sqrt(v / (1 - std::pow(0.999, step + 1))) + 1e-8);
    adam.begin_step(static_cast<std::uint64_t>(step), 0.1);
    adam.update(Variant::fast, 0, 1, parameter, gradient);
    EXPECT_NEAR(parameter[0], p, 1e-12);
  }
}

TEST(Optimizer, AdamWDecaysApartFromTheGradientAndAdamWithIt) {
  for (OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw}) {
    std::vector<OptimizerState<double>> state;
    ElementOptimizer<double> optimizer({.kind = kind, .weight_decay = 0.1}, 1, state);
    std::vector<double> p{2.0}, g{0.0};
    optimizer.begin_step(0, 0.5);
    optimizer.update(Variant::fast, 0, 1, p, g);
    // With a zero gradient AdamW only shrinks by lr * decay; Adam takes the decay for a gradient and steps by lr.
    EXPECT_NEAR(p[0], kind == OptimizerKind::adamw ? 2.0 - 0.5 * 0.1 * 2.0 : 2.0 - 0.5, 1e-6);
  }
}

TEST(Optimizer, SgdWithMomentumAndNesterovFollowTheirDefinitions) {
  for (bool nesterov : {false, true}) {
    std::vector<OptimizerState<double>> state;
    ElementOptimizer<double> sgd({.kind = OptimizerKind::sgd, .momentum = 0.9, .nesterov = nesterov}, 1, state);
    std::vector<double> p{1.0}, g{0.5};
    double expected = 1.0, velocity = 0.0;
    for (std::uint64_t step = 0; step < 5; ++step) {
      sgd.begin_step(step, 0.1);
      sgd.update(Variant::fast, 0, 1, p, g);
      velocity = 0.9 * velocity + 0.5;
      expected -= 0.1 * (nesterov ? 0.5 + 0.9 * velocity : velocity);
      EXPECT_NEAR(p[0], expected, 1e-14);
    }
  }
}

TEST(Optimizer, ClipsByValueAndScalesForTheNorm) {
  std::vector<OptimizerState<double>> state;
  ElementOptimizer<double> sgd({.kind = OptimizerKind::sgd, .clip_value = 1.0}, 3, state);
  std::vector<double> p{0, 0, 0}, g{5.0, -7.0, 0.5};
  sgd.begin_step(0, 1.0);
  sgd.update(Variant::fast, 0, 3, p, g);
  EXPECT_THAT(p, ::testing::ElementsAre(-1.0, 1.0, -0.5));
  sgd.begin_step(1, 1.0, 0.1);
  std::fill(p.begin(), p.end(), 0.0);
  sgd.update(Variant::fast, 0, 3, p, g);
  EXPECT_DOUBLE_EQ(p[0], -0.5);
}

TEST(Optimizer, RangesInAnyOrderGiveTheSameBits) {
  const std::size_t n = 1003;
  std::vector<float> g(n), whole(n), parts(n);
  const RandomStream r(1, RandomUse::user);
  for (std::uint32_t i = 0; i < n; ++i) g[i] = static_cast<float>(r.normal(i));
  std::vector<OptimizerState<float>> a, b;
  ElementOptimizer<float> one({.kind = OptimizerKind::adamw, .weight_decay = 0.01}, n, a);
  ElementOptimizer<float> two({.kind = OptimizerKind::adamw, .weight_decay = 0.01}, n, b);
  for (std::uint64_t step = 0; step < 3; ++step) {
    one.begin_step(step, 0.01);
    two.begin_step(step, 0.01);
    one.update(Variant::fast, 0, n, whole, g);
    two.update(Variant::fast, 17, n, parts, g);
    two.update(Variant::fast, 0, 17, parts, g);
    EXPECT_EQ(whole, parts);
  }
}

TEST(Optimizer, NamesTheOptionThatIsWrong) {
  const auto message = [](OptimizerOptions o) -> std::string {
    try {
      validate(o);
    } catch (const Exception& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(message({.lr = -1}), ::testing::HasSubstr("optimizer.lr is -1"));
  EXPECT_THAT(message({.lr = NAN}), ::testing::HasSubstr("optimizer.lr"));
  EXPECT_THAT(message({.beta1 = 1.0}), ::testing::HasSubstr("beta1"));
  EXPECT_THAT(message({.nesterov = true}), ::testing::HasSubstr("momentum"));
  EXPECT_EQ(message({}), "");
}

constexpr auto rosenbrock = [](std::span<const double> x, std::span<double> g) {
  const double a = 1 - x[0], b = x[1] - x[0] * x[0];
  g[0] = -2 * a - 400 * x[0] * b;
  g[1] = 200 * b;
  return a * a + 100 * b * b;
};

TEST(Lbfgs, FindsTheMinimumOfRosenbrocksValley) {
  const Exec ex({.threads = 1});
  LbfgsHistory<double> history;
  Lbfgs<double> lbfgs(ex, {.kind = OptimizerKind::lbfgs, .lr = 1.0}, 2, history);
  std::vector<double> x{-1.2, 1.0}, g(2);
  LbfgsReport report;
  for (int step = 0; step < 10; ++step) report = lbfgs.step(rosenbrock, x, g);
  EXPECT_NEAR(x[0], 1.0, 1e-8);
  EXPECT_NEAR(x[1], 1.0, 1e-8);
  EXPECT_LT(report.loss, 1e-18);
}

TEST(Lbfgs, NeverGoesUpAndKeepsItsBudget) {
  const Exec ex({.threads = 1});
  LbfgsHistory<double> history;
  Lbfgs<double> lbfgs(ex, {.kind = OptimizerKind::lbfgs, .lr = 1.0}, 2, history);
  std::vector<double> x{-1.2, 1.0}, g(2);
  double last = rosenbrock(x, g);
  for (int step = 0; step < 8; ++step) {
    const LbfgsReport report = lbfgs.step(rosenbrock, x, g);
    EXPECT_LE(report.loss, last);
    EXPECT_LE(report.iterations, 20u);
    EXPECT_LE(report.evaluations, 25u);
    last = report.loss;
  }
}

TEST(Lbfgs, ContinuesFromASavedHistoryWithTheSameBits) {
  const Exec ex({.threads = 1});
  const OptimizerOptions o{.kind = OptimizerKind::lbfgs, .lr = 1.0, .history = 3, .iterations = 4, .evaluations = 6};
  LbfgsHistory<double> whole_history, part_history;
  std::vector<double> whole{-1.2, 1.0}, part{-1.2, 1.0}, g(2);
  Lbfgs<double> all(ex, o, 2, whole_history);
  for (int step = 0; step < 6; ++step) {
    all.step(rosenbrock, whole, g);
    Lbfgs<double>(ex, o, 2, part_history).step(rosenbrock, part, g);  // a new optimizer every step
    EXPECT_EQ(whole, part);
  }
}

TEST(Lbfgs, SurvivesLossesThatAreNotFinite) {
  const Exec ex({.threads = 1});
  LbfgsHistory<double> history;
  Lbfgs<double> lbfgs(ex, {.kind = OptimizerKind::lbfgs, .lr = 1.0}, 1, history);
  std::vector<double> x{0.9}, g(1);
  const auto barrier = [](std::span<const double> at, std::span<double> gradient) {
    gradient[0] = 100 * (at[0] - 0.999) - 1e-3 / (1 - at[0]);
    return at[0] >= 1 ? NAN : 50 * (at[0] - 0.999) * (at[0] - 0.999) + 1e-3 * std::log(1 - at[0]);
  };
  for (int step = 0; step < 3; ++step) lbfgs.step(barrier, x, g);
  EXPECT_TRUE(std::isfinite(x[0]));
  EXPECT_LT(x[0], 1.0);
}

TEST(Schedule, StartsAtOneAndFollowsItsShape) {
  EXPECT_EQ(schedule_factor({}, 0, 100), 1.0);
  EXPECT_EQ(schedule_factor({}, 99, 100), 1.0);
  const ScheduleOptions cosine{.kind = ScheduleKind::cosine, .final_factor = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(cosine, 0, 100), 1.0);
  EXPECT_NEAR(schedule_factor(cosine, 50, 100), 0.55, 1e-12);
  EXPECT_NEAR(schedule_factor(cosine, 100, 100), 0.1, 1e-12);
  const ScheduleOptions step{.kind = ScheduleKind::step, .every = 0.5, .factor = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(step, 49, 100), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(step, 50, 100), 0.1);
  const ScheduleOptions warm{.warmup = 0.1};
  EXPECT_LT(schedule_factor(warm, 0, 100), 0.2);
  EXPECT_EQ(schedule_factor(warm, 10, 100), 1.0);
}

}  // namespace
}  // namespace gradloom
