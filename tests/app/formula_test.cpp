// The formula of a network whose edges are known, beside what the search makes of the data.
#include "gradloom/app/formula/formula.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "gradloom/base/random.h"

namespace gradloom::test {
namespace {

using testing::HasSubstr;

// y_j = sum over inputs of f(j, i, x_i), by a network without hidden layers that has these functions, but for `error`.
template <class F>
app::FormulaData additive(std::size_t inputs, std::size_t targets, std::size_t rows, double error, const F& f) {
  app::FormulaData d;
  for (std::uint32_t i = 0; i < inputs; ++i) {
    d.features.push_back("x" + std::to_string(i + 1));
    d.column_of.push_back(i);
    d.x.emplace_back();
    for (std::uint32_t r = 0; r < rows; ++r)
      d.x.back().push_back(2 * RandomStream(7, RandomUse::test, 0, r).uniform(i) - 1);
  }
  d.columns = d.features;
  formula::NetworkSamples& s = d.network;
  s.widths = {inputs, targets}, s.node = {d.x}, s.edge.resize(1);
  s.bias = {std::vector<double>(targets, 0.0)};
  s.input_mean.assign(inputs, 0), s.input_scale.assign(inputs, 1);
  s.output_mean.assign(targets, 0), s.output_scale.assign(targets, 1);
  d.y.assign(targets, std::vector<double>(rows));
  d.predicted = d.y;
  for (std::size_t i = 0; i < inputs; ++i)
    for (std::size_t j = 0; j < targets; ++j) {
      d.targets.resize(targets, "y");
      s.edge[0].emplace_back();
      for (std::size_t r = 0; r < rows; ++r) {
        const double v = f(j, i, d.x[i][r]), seen = v + error * std::cos(40 * d.x[i][r]);
        d.y[j][r] += v, d.predicted[j][r] += seen, s.edge[0].back().push_back(seen);
      }
    }
  d.test_x = d.x, d.test_y = d.y;
  return d;
}

app::FormulaSearchOptions effort(double units) {
  app::FormulaSearchOptions o;
  o.effort = units;
  return o;
}

double six_sines(std::size_t, std::size_t, double x) { return std::sin(8 * x); }

TEST(FindFormulas, EdgesHaveTheFormulaWhereTheSearchHasAMean) {
  const app::FormulaData d = additive(6, 1, 600, 0.01, six_sines);
  const Exec ex({.threads = 1});
  const app::FormulaReport r = app::find_formulas(ex, d, effort(3000), {}).front();
  EXPECT_EQ(r.status, "exact") << r.text << ": " << r.note;
  EXPECT_EQ(r.text, "sin(8*x1) + sin(8*x2) + sin(8*x3) + sin(8*x4) + sin(8*x5) + sin(8*x6)");
  EXPECT_THAT(r.steps, testing::ElementsAre("edge by edge"));
}

TEST(FindFormulas, AMeanIsSaidToBeWorseThanTheNetworkThatKnowsBetter) {
  app::FormulaData d = additive(2, 1, 200, 0, [](std::size_t, std::size_t, double) { return 0.0; });
  for (std::uint32_t r = 0; r < 200; ++r) d.y[0][r] = RandomStream(7, RandomUse::test, 1, r).uniform(0);
  d.test_y = d.predicted = d.y;
  const Exec ex({.threads = 1});
  const app::FormulaSearchOptions options = effort(500);
  const app::FormulaReport known = app::find_formulas(ex, d, options, {}).front();
  EXPECT_THAT(known.note, HasSubstr("the network does"));
  for (double& v : d.predicted[0]) v = 0.5;
  EXPECT_THAT(app::find_formulas(ex, d, options, {}).front().note, HasSubstr("nothing was found"));
}

// sin(x + small x^2): a sine comes close, and is not it.
TEST(FindFormulas, EdgesThatComeCloseAreNotExact) {
  const app::FormulaData d = additive(3, 1, 400, 0, [](std::size_t, std::size_t i, double x) {
    return std::sin(6 * x + (i == 1 ? 1e-5 : 0) * std::exp(x) * x * x) + 0.1 * std::cos(11 * x * x);
  });
  const Exec ex({.threads = 1});
  EXPECT_EQ(app::find_formulas(ex, d, effort(1000), {}).front().status, "approximate");
}

TEST(FindFormulas, ScoresAreThoseOfEachTarget) {
  const app::FormulaData d = additive(2, 2, 200, 0, [](std::size_t j, std::size_t i, double x) {
    return j != i ? 0.0 : i == 0 ? std::sin(x) : x * x;
  });
  const Exec ex({.threads = 1});
  const auto both = app::find_formulas(ex, d, effort(1000), {});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].text, "sin(x1)");
  for (std::size_t t = 0; t < 2; ++t) {
    EXPECT_EQ(both[t].inputs[t].score, 1.0);
    EXPECT_EQ(both[t].inputs[1 - t].score, 0.0);
  }
}

TEST(FindFormulas, WorkOfManyEdgesIsBoundedAndTold) {
  const app::FormulaData d = additive(60, 1, 60, 0, six_sines);
  const Exec ex({.threads = 1});
  double last = 0;
  const auto progress = [&](double used, double limit) {
    EXPECT_GE(used, last);
    EXPECT_EQ(limit, 1000);
    last = used;
  };
  const app::FormulaReport r = app::find_formulas(ex, d, effort(1000), progress).front();
  EXPECT_GT(last, 0);
  EXPECT_LT(r.work, 4000);
  EXPECT_THAT(r.note, HasSubstr("straight lines"));
  std::atomic<bool> stop = true;
  app::FormulaSearchOptions stopped = effort(1e9);
  stopped.stop = &stop;
  EXPECT_THAT(app::find_formulas(ex, d, stopped, {}).front().note, HasSubstr("stopped"));
}

}  // namespace
}  // namespace gradloom::test
