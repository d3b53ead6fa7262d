#include "gradloom/formula/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>

#include "gradloom/base/error.h"
#include "gradloom/base/random.h"
#include "gradloom/formula/print.h"
#include "gradloom/formula/refine.h"

namespace gradloom::formula {
namespace {

using Row = std::vector<double>;

// Uniform rows in [low, high] of each variable.
Table sample(const std::vector<std::pair<double, double>>& box, const std::function<double(const Row&)>& f,
             std::size_t rows = 600, std::uint64_t seed = 1) {
  Table t;
  t.x.resize(box.size());
  for (std::size_t i = 0; i < box.size(); ++i) t.names.push_back("x" + std::to_string(i + 1));
  for (std::size_t r = 0; r < rows; ++r) {
    const RandomStream random(seed, RandomUse::test, 0, static_cast<std::uint32_t>(r));
    Row row;
    for (std::size_t i = 0; i < box.size(); ++i) {
      row.push_back(box[i].first + (box[i].second - box[i].first) * random.uniform(static_cast<std::uint32_t>(i)));
      t.x[i].push_back(row.back());
    }
    t.y.push_back(f(row));
  }
  return t;
}

std::string text_of(const SearchResult& r, const Table& t) {
  return r.formula ? print(*r.formula, t.names, Notation::text) : "none";
}

std::string found(const Table& t, double effort = 20000) {
  const Exec ex({.threads = 1});
  return text_of(search_formula(ex, t, {.effort = effort}), t);
}

TEST(FormulaSearch, FindsRelationsWithoutASurrogate) {
  EXPECT_EQ(found(sample({{1, 3}, {1, 3}}, [](const Row& x) { return x[0] * x[1]; })), "x1*x2");
  EXPECT_EQ(found(sample({{1, 3}, {1, 3}}, [](const Row& x) { return (x[0] - x[1]) / (x[0] + x[1]); })),
            "(x1 - x2)/(x1 + x2)");
  EXPECT_EQ(found(sample({{0.5, 2}, {0.5, 2}}, [](const Row& x) { return std::hypot(x[0], x[1]); })),
            "sqrt(x1^2 + x2^2)");
  EXPECT_EQ(found(sample({{-2, 2}, {0, 2}}, [](const Row& x) { return std::sin(x[0]) * std::exp(-x[1]); })),
            "exp(-x2)*sin(x1)");
}

TEST(FormulaSearch, FindsAnInnerScale) {
  EXPECT_EQ(found(sample({{0, 3}}, [](const Row& x) { return 2 - 3 * std::exp(-x[0] / 4); })), "2 - 3*exp(-x1/4)");
}

TEST(FormulaSearch, FindsWhatOnlySymmetryShows) {
  const Table t = sample({{1, 5}, {1, 2}, {3, 10}},
                         [](const Row& x) { return x[0] * x[1] / std::sqrt(1 - x[1] * x[1] / (x[2] * x[2])); });
  const Exec ex({.threads = 1});
  const SearchResult r = search_formula(ex, t);
  ASSERT_TRUE(r.formula);
  EXPECT_LT(r.error, 1e-12);
  EXPECT_THAT(r.steps, testing::Contains("scaling"));
  EXPECT_EQ(inexact_constants(*r.formula), 0u);
}

// No surrogate of all variables follows them with so few rows; a sum of functions of few variables does.
TEST(FormulaSearch, FindsSumsOfQuickFunctions) {
  const std::vector<std::pair<double, double>> four{{-1, 1}, {-1, 1}, {-1, 1}, {-1, 1}},
      three(four.begin() + 1, four.end());
  const auto sines = [](const Row& x) {
    double y = 0;
    for (const double v : x) y += std::sin(8 * v);
    return y;
  };
  EXPECT_EQ(found(sample(four, sines)), "sin(8*x1) + sin(8*x2) + sin(8*x3) + sin(8*x4)");
  EXPECT_EQ(found(sample(three, [](const Row& x) { return std::pow(x[0], 5) + std::pow(x[1], 3) * x[2]; })),
            "x1^5 + x2^3*x3");
  EXPECT_EQ(found(sample(three, [](const Row& x) { return std::sin(5 * x[0]) * x[1] + std::cos(3 * x[2]); })),
            "x2*sin(5*x1) + cos(3*x3)");
}

TEST(FormulaSearch, GivesTheSameAnswerAndWorkOnAnyThreads) {
  const Table t = sample(
      {{1, 3}, {1, 3}, {1, 3}}, [](const Row& x) { return x[0] * (2 - 2 * std::cos(x[1] * x[2])); }, 400);
  const Exec one({.threads = 1}), three({.threads = 3});
  const SearchResult a = search_formula(one, t), b = search_formula(three, t);
  ASSERT_TRUE(a.formula);
  EXPECT_EQ(text_of(a, t), text_of(b, t));
  EXPECT_EQ((*a.formula)->key, (*b.formula)->key);
  EXPECT_EQ(a.work, b.work);
}

TEST(FormulaSearch, CallsNoFormulaExactThatNoiseHides) {
  const RandomStream noise(7, RandomUse::test, 1);
  std::uint32_t n = 0;
  const Table t = sample(
      {{1, 3}, {1, 3}}, [&](const Row& x) { return x[0] * x[1] + 1e-4 * noise.normal(n++); }, 300);
  EXPECT_EQ(found(t, 1500), "none");
}

TEST(FormulaSearch, CallsNoFormulaExactForAFunctionOutsideOfItsReach) {
  const Table t = sample(
      {{0.5, 1.5}}, [](const Row& x) { return std::tgamma(x[0]) + std::erf(3 * x[0]); }, 400);
  EXPECT_EQ(found(t, 3000), "none");
}

TEST(FormulaSearch, StopsWhenItsEffortIsUsed) {
  const Table t = sample(
      {{0.5, 1.5}, {1, 2}}, [](const Row& x) { return std::tgamma(x[0] * x[1]); }, 200);
  const Exec ex({.threads = 1});
  const SearchResult r = search_formula(ex, t, {.effort = 5});
  EXPECT_FALSE(r.formula);
  EXPECT_TRUE(r.exhausted);
  // A surrogate looks for its lengths only as far as there is work left.
  EXPECT_LT(search_formula(ex, t, {.effort = 500}).work, 1000);
}

// With other ranks a stop has no effect: they would have to end at the same candidate.
TEST(FormulaSearch, StopsWhenItIsTold) {
  const Table t = sample(
      {{0.5, 1.5}, {1, 2}}, [](const Row& x) { return std::tgamma(x[0] * x[1]); }, 200);
  const Exec ex({.threads = 1});
  for (const unsigned ranks : {1u, 2u}) {
    SearchOptions options{.effort = 300};
    options.deal.ranks = ranks;
    options.deal.exchange = [](std::span<Outcome>) {};
    const double whole = search_formula(ex, t, options).work;
    std::atomic<bool> stop = false;
    options.progress = [&](double, double) { stop = true; };
    options.stop = &stop;
    const SearchResult r = search_formula(ex, t, options);
    EXPECT_TRUE(stop);
    EXPECT_EQ(r.work < whole, ranks == 1) << r.work << " of " << whole;
    EXPECT_TRUE(ranks > 1 || r.exhausted);
  }
}

TEST(FormulaSearch, AConstantTargetIsItsValue) {
  EXPECT_EQ(found(sample({{0, 1}}, [](const Row&) { return 2.5; })), "5/2");
}

TEST(FormulaSearch, DuplicatedAndConstantColumnsDoNotMatter) {
  Table t = sample({{1, 3}, {1, 3}}, [](const Row& x) { return x[0] / x[1]; });
  t.names = {"a", "b", "copy", "flat"};
  t.x.push_back(t.x[0]);
  t.x.push_back(std::vector<double>(t.rows(), 4.0));
  EXPECT_EQ(found(t), "a/b");
}

TEST(FormulaSearch, ColumnsWithoutEffectAreLeftOut) {
  const std::vector<std::pair<double, double>> box(10, {-2, 2});
  const Exec ex({.threads = 1});
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Table t = sample(
        box, [](const Row& x) { return std::sin(x[0]) + x[4] * x[9]; }, 1000, seed);
    const SearchResult r = search_formula(ex, t, {.effort = 20000});
    EXPECT_EQ(text_of(r, t), "x5*x10 + sin(x1)");
    EXPECT_EQ(r.steps.front(), "columns without effect");
  }
}

TEST(FormulaSearch, RefusesTablesThatCannotBeSearched) {
  const Exec ex({.threads = 1});
  Table t = sample(
      {{0, 1}}, [](const Row& x) { return x[0]; }, 10);
  EXPECT_THROW(search_formula(ex, t), Exception);
  t = sample(
      {{0, 1}}, [](const Row& x) { return x[0]; }, 100);
  t.y[3] = std::nan("");
  EXPECT_THROW(search_formula(ex, t), Exception);
  t = sample(
      {{0, 1}}, [](const Row& x) { return x[0]; }, 100);
  t.x[0].pop_back();
  EXPECT_THROW(search_formula(ex, t), Exception);
}

TEST(FormulaConstants, AreFittedAndThenSnapped) {
  const Table t = sample(
      {{0, 2}}, [](const Row& x) { return 0.75 * std::exp(-1.3 * x[0]); }, 100);
  const Expr start =
      number(Constant::approximate(0.6)) * call(Function::exp, number(Constant::approximate(-1.0)) * variable(0));
  const Expr fitted = refine_constants(start, t.x, t.y, {.iterations = 20});
  EXPECT_LT(largest_error(fitted, t.x, t.y), 1e-12);
  const Expr snapped = snap_constants(fitted, t.x, t.y, 1e-10, 1e-7);
  EXPECT_EQ(print(snapped, t.names, Notation::text), "3*exp(-13*x1/10)/4");
}

}  // namespace
}  // namespace gradloom::formula
