#include "gradloom/formula/edges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "gradloom/base/error.h"
#include "gradloom/base/random.h"
#include "gradloom/formula/noisy.h"
#include "gradloom/formula/print.h"
#include "gradloom/formula/refine.h"

namespace gradloom::formula {
namespace {

std::vector<double> uniform(double low, double high, std::size_t rows, std::uint32_t column) {
  std::vector<double> v;
  for (std::uint32_t r = 0; r < rows; ++r)
    v.push_back(low + (high - low) * RandomStream(3, RandomUse::test, 0, r).uniform(column));
  return v;
}

std::vector<double> map(const std::vector<double>& x, const std::function<double(double)>& f) {
  std::vector<double> y;
  for (const double v : x) y.push_back(f(v));
  return y;
}

TEST(Library, HasAtLeastTwentyFiveFunctionsWithNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const LibraryFunction& f : library()) names.insert(f.name);
  EXPECT_GE(names.size(), 25u);
  EXPECT_EQ(names.size(), library().size());
}

TEST(Library, KnowsItsOwnFunctions) {
  const std::vector<double> x = uniform(0.5, 2.5, 200, 0);
  const auto best = [&](const std::function<double(double)>& f) { return fit_edge(x, map(x, f), library()).front(); };
  EXPECT_EQ(best([](double v) { return 3 * v - 1; }).function, "x");
  EXPECT_EQ(best([](double v) { return 2 * std::pow(v - 1, 2) + 0.3; }).function, "x^2");
  EXPECT_EQ(best([](double v) { return 0.7 * std::exp(-1.1 * v); }).function, "exp");
  EXPECT_EQ(best([](double v) { return std::log(v + 0.2); }).function, "log");
  EXPECT_EQ(best([](double v) { return 1.5 * std::sin(2.2 * v + 0.4) + 1; }).function, "sin");
  EXPECT_EQ(best([](double v) { return std::tanh(2 * v - 3); }).function, "tanh");
  EXPECT_EQ(best([](double) { return 4.0; }).function, "0");
}

TEST(Library, KeepsToTheFunctionsItIsGiven) {
  const std::vector<double> x = uniform(0.5, 2.5, 100, 0), y = map(x, [](double v) { return std::exp(v); });
  const Functions two({.functions = {"x", "x^2"}});
  for (const EdgeCandidate& c : fit_edge(x, y, two.of_edge(0, 0, 0)))
    EXPECT_TRUE(c.function == "x" || c.function == "x^2");
}

// A pole or a boundary just outside of the rows would meet the next ones.
TEST(Library, ProposesNothingThatIsUndefinedALittleOutside) {
  const std::vector<double> x = uniform(-1, 1, 200, 0);
  const auto found_for = [&](const std::function<double(double)>& f) {
    auto found = fit_edge(x, map(x, f), library(), {.most = 30});
    EXPECT_FALSE(found.empty());
    return found;
  };
  const Columns wider = wider_rows({x});
  for (const auto& f : {std::function<double(double)>([](double v) { return 1 / (1.02 - v); }),
                        std::function<double(double)>([](double v) { return std::sqrt(v + 1.01); }),
                        std::function<double(double)>([](double v) { return std::tan(1.5 * v); })})
    for (const EdgeCandidate& c : found_for(f)) EXPECT_TRUE(defined_on(c.text, wider, 200)) << c.function;
  // Columns that are never negative stay so: their root is no mistake.
  const std::vector<double> positive = uniform(0.01, 4, 200, 0);
  const auto root = fit_edge(positive, map(positive, [](double v) { return std::sqrt(v); }), library());
  EXPECT_EQ(root.front().function, "sqrt");
}

TEST(Domain, KnowsPolesBetweenThePointsAndSignsOfColumns) {
  const Expr x = variable(0);
  const Columns two{{-1, 1}}, positive{{1, 2}};
  EXPECT_FALSE(defined_on(power(x, {-1, 1}), two, 2));
  EXPECT_FALSE(defined_on(power(x, {-2, 1}), two, 2));
  EXPECT_TRUE(defined_on(power(x, {-2, 1}), positive, 2));
  EXPECT_FALSE(defined_on(call(Function::tan, x), positive, 2));
  EXPECT_TRUE(defined_on(call(Function::tan, x), two, 2));
  EXPECT_FALSE(defined_on(sqrt(x), two, 2));
  EXPECT_FALSE(defined_on(number(0) * x + call(Function::log, x + number(1)), two, 2));
  const Columns wide = wider_rows({{0.0, 1.0}, {-1.0, 1.0}, {0.01, 1.0}, {3.0, 3.0}});
  EXPECT_EQ(wide[0][0], 0.0);
  EXPECT_DOUBLE_EQ(wide[1][0], -1.1);
  EXPECT_DOUBLE_EQ(wide[1][1], 1.1);
  EXPECT_DOUBLE_EQ(wide[2][0], 0.005);
  EXPECT_EQ(wide[3][0], 3.0);
}

TEST(Library, FindsAQuickOscillation) {
  const std::vector<double> x = uniform(-1, 1, 400, 0);
  EXPECT_EQ(fit_edge(x, map(x, [](double v) { return std::sin(13 * v + 0.4); }), library()).front().function, "sin");
  EXPECT_EQ(fit_edge(x, map(x, [](double v) { return std::sin(31 * v); }), library()).front().function, "sin");
}

std::string refusal(const FunctionOptions& options) {
  try {
    Functions f(options);
  } catch (const Exception& e) {
    return e.what();
  }
  return "";
}

TEST(Library, FitsAFunctionOfTheUsersOwn) {
  const std::vector<double> x = uniform(0.2, 4, 200, 0);
  const Functions more({.define = {"hill = x^3/(1 + x^3)", "bump = exp(-x)*x"}});
  const auto best = [&](const std::function<double(double)>& f) {
    return fit_edge(x, map(x, f), more.of_edge(0, 0, 0)).front();
  };
  const EdgeCandidate hill = best([](double v) { return 3 * v * v * v / (v * v * v + 2.25) - 1; });
  EXPECT_EQ(hill.function, "hill");
  EXPECT_LT(hill.rmse, 1e-9);
  EXPECT_EQ(best([](double v) { return 2 * v * std::exp(-1.5 * v); }).function, "bump");
}

TEST(Library, ForbidsAndFixesFunctionsEverywhereOrOnOneEdge) {
  const Functions f({.forbid = {"sin", "0.1.2 exp"}, .fix = {"1.0.0 log"}});
  const auto has = [](const std::vector<LibraryFunction>& all, const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const LibraryFunction& g) { return g.name == name; });
  };
  EXPECT_FALSE(has(f.of_edge(0, 0, 0), "sin"));
  EXPECT_TRUE(has(f.of_edge(0, 0, 0), "exp"));
  EXPECT_FALSE(has(f.of_edge(0, 1, 2), "exp"));
  ASSERT_EQ(f.of_edge(1, 0, 0).size(), 1u);
  EXPECT_EQ(f.of_edge(1, 0, 0).front().name, "log");
  EXPECT_FALSE(f.allows(variable(0) + call(Function::sin, variable(1))));
  EXPECT_TRUE(f.allows(call(Function::cos, variable(1))));
  EXPECT_TRUE(f.by_edge());
  EXPECT_FALSE(Functions({.forbid = {"sin"}}).by_edge());
}

TEST(Library, NamesWhatIsWrongWithFunctions) {
  using testing::AllOf, testing::HasSubstr;
  EXPECT_THAT(refusal({.functions = {"sine"}}), AllOf(HasSubstr("'sine'"), HasSubstr("there are 0, x, x^2")));
  EXPECT_THAT(refusal({.define = {"hill"}}), HasSubstr("has no '='"));
  EXPECT_THAT(refusal({.define = {"2x = x"}}), HasSubstr("not an identifier"));
  EXPECT_THAT(refusal({.define = {"sin = x"}}), HasSubstr("of the library"));
  EXPECT_THAT(refusal({.define = {"f = x +"}}), HasSubstr("at the end"));
  EXPECT_THAT(refusal({.define = {"f = 3*z"}}), HasSubstr("'z' is not known at character 4"));
  EXPECT_THAT(refusal({.define = {"f = 3"}}), HasSubstr("does not depend on x"));
  EXPECT_THAT(refusal({.define = {"f = x^2", "f = x^3"}}), HasSubstr("defined twice"));
  EXPECT_THAT(refusal({.forbid = {"0.1 sin"}}), HasSubstr("LAYER.FROM.TO FUNCTION"));
  EXPECT_THAT(refusal({.fix = {"0.1.2 sine"}}), HasSubstr("'sine'"));
  EXPECT_THAT(refusal({.fix = {"0.1.2 sin", "0.1.2 cos"}}), HasSubstr("fixed twice"));
  EXPECT_THAT(refusal({.forbid = {"sin"}, .fix = {"0.1.2 sin"}}), HasSubstr("forbidden there"));
  EXPECT_THAT(refusal({.functions = {"sin"}, .forbid = {"sin"}}), HasSubstr("every function is forbidden"));
  const std::vector<std::size_t> widths{2, 3, 1};
  EXPECT_NO_THROW(Functions({.fix = {"0.1.2 sin"}}).require_edges(widths));
  EXPECT_THROW(Functions({.fix = {"0.2.2 sin"}}).require_edges(widths), Exception);
  EXPECT_THROW(Functions({.forbid = {"2.0.0 sin"}}).require_edges(widths), Exception);
}

TEST(Library, NeverProposesAFunctionThatIsNotFinite) {
  const std::vector<double> x = uniform(-1, 1, 200, 0), y = map(x, [](double v) { return 1 / (v * v + 0.01); });
  for (const EdgeCandidate& c : fit_edge(x, y, library(), {.most = 30})) {
    EXPECT_TRUE(std::isfinite(c.rmse)) << c.function;
    EXPECT_LT(largest_error(c.text, {x}, y), 1e6) << c.function;
  }
}

// y = sin(x1) + x2^2 in two layers: the hidden node adds, the output is linear. x3 does nothing, x4 is constant.
NetworkSamples small_network(std::size_t rows) {
  NetworkSamples s;
  s.widths = {4, 1, 1};
  for (std::uint32_t i = 0; i < 3; ++i) s.node.resize(2), s.node[0].push_back(uniform(-1.5, 1.5, rows, i));
  s.node[0].push_back(std::vector<double>(rows, 0.1));
  s.edge.resize(2);
  s.edge[0] = {map(s.node[0][0], [](double v) { return std::sin(v); }),
               map(s.node[0][1], [](double v) { return v * v; }), map(s.node[0][2], [](double v) { return 1e-4 * v; }),
               map(s.node[0][3], [](double v) { return 3 * v; })};
  std::vector<double> hidden(rows);
  for (std::size_t r = 0; r < rows; ++r)
    for (const auto& e : s.edge[0]) hidden[r] += e[r];
  s.node[1] = {hidden};
  s.edge[1] = {map(hidden, [](double v) { return 2 * v; })};
  s.bias = {{0.0}, {-0.6}};
  s.input_mean = {0, 0, 0, 0}, s.input_scale = {1, 1, 1, 1};
  s.output_mean = {0}, s.output_scale = {1};
  return s;
}

TEST(Scores, AreSharesOfTheVarianceAndZeroForAConstantColumn) {
  const Scores scores = score(small_network(500));
  double sum = 0;
  for (const Score& s : scores.nodes[0]) sum += s.value;
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(scores.nodes[0][3].value, 0.0);
  EXPECT_EQ(scores.nodes[0][3].error, 0.0);
  EXPECT_LT(scores.nodes[0][2].value, 1e-6);
  EXPECT_GT(scores.nodes[0][0].value, 0.3);
  EXPECT_GT(scores.nodes[0][0].error, 0);
  EXPECT_LT(scores.nodes[0][0].error, 0.1);
}

TEST(Scores, OfAColumnAreThoseOfItsInputsTogether) {
  const NetworkSamples s = small_network(500);
  const Scores own = score(s);
  ASSERT_EQ(own.columns.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(own.columns[i].value, own.nodes[0][i].value);
    EXPECT_EQ(own.columns[i].error, own.nodes[0][i].error);
  }
  const std::vector<std::size_t> two{0, 1, 1, 1}, all{0, 0, 0, 0}, few{0, 1};
  const Scores scores = score(s, two);
  ASSERT_EQ(scores.columns.size(), 2u);
  // Up to the covariance of x2^2 and 1e-4 x3.
  EXPECT_NEAR(scores.columns[1].value, own.nodes[0][1].value + own.nodes[0][2].value + own.nodes[0][3].value, 1e-4);
  // What one wins the other loses: their errors are equal, and the sum of all has none.
  EXPECT_NEAR(scores.columns[1].error, scores.columns[0].error, 1e-14);
  EXPECT_NEAR(score(s, all).columns[0].error, 0, 1e-14);
  EXPECT_NEAR(score(s, all).columns[0].value, 1, 1e-12);
  EXPECT_THROW(score(s, few), Exception);
}

TEST(Scores, OfCategoriesCountOnlyWhatTheyChangeTogether) {
  NetworkSamples s = small_network(500);
  // Inputs 1 and 2 are the categories of one column: one of them is 1 in every row.
  for (std::size_t r = 0; r < 500; ++r) {
    const bool first = r % 3 == 0;
    s.edge[0][1][r] = first ? 2.0 : 0.5;
    s.edge[0][2][r] = first ? 0.5 : 2.0;
  }
  const std::vector<std::size_t> columns{0, 1, 1, 2};
  const Scores scores = score(s, columns);
  EXPECT_EQ(scores.columns[1].value, 0.0);
  EXPECT_EQ(scores.nodes[0][1].value, 0.0);
  EXPECT_NEAR(scores.columns[0].value, 1, 1e-12);
  EXPECT_GT(score(s).nodes[0][1].value, 0.1);  // as columns of their own
  // Categories that change the sum have the share of what they change.
  for (std::size_t r = 0; r < 500; ++r) s.edge[0][2][r] = 0;
  const double v0 = score(s).nodes[0][0].value, v1 = score(s).nodes[0][1].value;
  EXPECT_NEAR(score(s, columns).columns[1].value, v1 / (v0 + v1), 1e-12);
}

TEST(Scores, OfOneOutputAreSharesOfItsVarianceAlone) {
  NetworkSamples s = small_network(500);
  // The same network with a second output that does not see the hidden node.
  s.widths = {4, 1, 2}, s.bias[1] = {-0.6, 0};
  s.edge[1].push_back(std::vector<double>(500, 0.0));
  s.output_mean = {0, 0}, s.output_scale = {1, 1};
  EXPECT_NEAR(score(s, {}, 0).nodes[1][0].value, 1, 1e-12);
  EXPECT_EQ(score(s, {}, 1).nodes[1][0].value, 0.0);
  EXPECT_EQ(score(s, {}, 0).edges[1][1].value, 0.0);
}

TEST(Edges, BecomeTheFormulaOfTheirNetwork) {
  const NetworkSamples s = small_network(500);
  Table t;
  t.names = {"a", "b", "c", "d"};
  t.x = s.node[0];
  for (std::size_t r = 0; r < s.rows(); ++r) t.y.push_back(2 * std::sin(t.x[0][r]) + 2 * t.x[1][r] * t.x[1][r]);
  const Exec one({.threads = 1}), three({.threads = 3});
  Work work(one, 1e6), shared(three, 1e6);
  std::vector<ExplainedEdge> edges = explain_edges(work, s, score(s), {});
  const Expr formula = edge_formula(work, s, edges, t, 0);
  EXPECT_LT(rms_error(formula, t.x, t.y), 1e-9);
  ASSERT_EQ(edges.size(), 5u);
  EXPECT_EQ(edges[0].candidates.front().function, "sin");
  EXPECT_EQ(edges[1].candidates.front().function, "x^2");
  EXPECT_FALSE(edges[2].kept);
  EXPECT_FALSE(edges[3].kept);
  edges = explain_edges(shared, s, score(s), {});
  EXPECT_EQ(edge_formula(shared, s, edges, t, 0)->key, formula->key);
  EXPECT_EQ(shared.used(), work.used());
}

// The network is wrong about its edges, and has learned noise of a third column.
TEST(Edges, BecomeOtherCandidatesWhereTheDataKnowBetter) {
  const std::size_t rows = 200;
  NetworkSamples s;
  s.widths = {3, 1};
  Table t{{"a", "b", "c"}, {uniform(0.5, 3, rows, 0), uniform(0.5, 3, rows, 1), uniform(0.5, 3, rows, 2)}, {}};
  for (std::size_t r = 0; r < rows; ++r) t.y.push_back(std::sqrt(t.x[0][r]) + std::log(t.x[1][r]));
  s.node = {t.x}, s.bias = {{0.0}};
  s.edge = {{t.x[0], t.x[1], map(t.x[2], [](double v) { return 0.01 * std::sin(5 * v); })}};
  s.input_mean = {0, 0, 0}, s.input_scale = {1, 1, 1}, s.output_mean = {0}, s.output_scale = {1};
  const Expr x = variable(0), one = approximate(1.1);
  const EdgeCandidate line{"x", one * x, 1, 0, 1}, square{"x^2", one * x * x, 1, 0, 2};
  const EdgeCandidate root{"sqrt", one * sqrt(x + approximate(0.1)), 1, 0, 3};
  const EdgeCandidate log{"log", one * call(Function::log, x + approximate(0.1)), 1, 0, 3};
  const EdgeCandidate sine{"sin", approximate(0.01) * call(Function::sin, approximate(5) * x), 1, 0, 3};
  std::vector<ExplainedEdge> edges{{0, 0, 0, {0.6, 0}, true, true, {square, line, root}},
                                   {0, 1, 0, {0.38, 0}, true, true, {line, log, square}},
                                   {0, 2, 0, {0.02, 0}, true, true, {sine, line}}};
  const Exec ex({.threads = 1});
  Work work(ex, 1e4);
  const Expr formula = edge_formula(work, s, edges, t, 0);
  EXPECT_EQ(edges[0].candidates.front().function, "sqrt");
  EXPECT_EQ(edges[1].candidates.front().function, "log");
  EXPECT_FALSE(edges[2].kept);
  EXPECT_LT(rms_error(formula, t.x, t.y), 1e-8);
}

// y = 3 sin(x1) x2 + x3: hidden nodes are the sum x3 and the product of sin(x1) and x2, whose factors are sums 1 and 2.
NetworkSamples product_network(std::size_t rows) {
  NetworkSamples s;
  s.widths = {3, 2, 1}, s.multiply = {1};
  s.node.resize(2), s.edge.resize(2);
  for (std::uint32_t i = 0; i < 3; ++i) s.node[0].push_back(uniform(-1.5, 1.5, rows, i));
  const std::vector<double> none(rows, 0.0);
  s.edge[0].assign(3 * 3, none);
  s.edge[0][0 * 3 + 1] = map(s.node[0][0], [](double v) { return std::sin(v); });
  s.edge[0][1 * 3 + 2] = s.node[0][1];
  s.edge[0][2 * 3 + 0] = s.node[0][2];
  std::vector<double> product(rows);
  for (std::size_t r = 0; r < rows; ++r) product[r] = s.edge[0][1][r] * s.edge[0][5][r];
  s.node[1] = {s.node[0][2], product};
  s.edge[1] = {s.node[0][2], map(product, [](double v) { return 3 * v; })};
  s.bias = {{0, 0, 0}, {0}};
  s.input_mean = {0, 0, 0}, s.input_scale = {1, 1, 1};
  s.output_mean = {0}, s.output_scale = {1};
  return s;
}

TEST(Scores, OfAProductAreSharedByItsFactors) {
  NetworkSamples s = product_network(500);
  const Scores scores = score(s);
  double sum = 0;
  for (const Score& i : scores.nodes[0]) sum += i.value;
  EXPECT_NEAR(sum, 1, 1e-12);
  ASSERT_EQ(scores.nodes[1].size(), 2u);
  EXPECT_NEAR(scores.nodes[0][0].value + scores.nodes[0][1].value, scores.nodes[1][1].value, 1e-12);
  // Both vary around 0.
  EXPECT_NEAR(scores.nodes[0][0].value, scores.nodes[0][1].value, 0.02 * scores.nodes[1][1].value);
  // Far from 0 and almost constant, a factor says little; constant, nothing.
  s.bias[0][2] = 100;
  EXPECT_LT(score(s).nodes[0][1].value, 1e-2);
  s.edge[0][1 * 3 + 2] = std::vector<double>(500, 2.0);
  EXPECT_EQ(score(s).nodes[0][1].value, 0.0);
  EXPECT_GT(score(s).nodes[0][0].value, 0.1);
}

TEST(Edges, OfAProductBecomeAProduct) {
  const NetworkSamples s = product_network(500);
  Table t;
  t.names = {"a", "b", "c"};
  t.x = s.node[0];
  for (std::size_t r = 0; r < s.rows(); ++r) t.y.push_back(3 * std::sin(t.x[0][r]) * t.x[1][r] + t.x[2][r]);
  const Exec one({.threads = 1});
  EdgeFormulaOptions options;
  Work work(one, 1e6);
  options.functions = Functions({.forbid = {"0.0.2 sin"}});  // an edge to the last sum
  std::vector<ExplainedEdge> edges = explain_edges(work, s, score(s), options);
  ASSERT_EQ(edges.size(), 9u + 2u);
  EXPECT_EQ(edges[1].to, 1u);
  EXPECT_EQ(edges[1].candidates.front().function, "sin");
  EXPECT_EQ(edges[5].candidates.front().function, "x");
  EXPECT_LT(rms_error(edge_formula(work, s, edges, t, 0), t.x, t.y), 1e-9);
  const Functions beyond({.fix = {"0.0.3 sin"}});
  EXPECT_THROW(beyond.require_edges(s.widths, s.multiply), Exception);
  EXPECT_NO_THROW(Functions({.fix = {"0.0.2 sin"}}).require_edges(s.widths, s.multiply));
  EXPECT_THROW(Functions({.fix = {"0.0.2 sin"}}).require_edges(s.widths), Exception);
}

// Each function with an inner and an outer constant, away from where it is not defined.
TEST(Refine, FindsTheConstantsOfEveryFunction) {
  for (const auto& f : kFunctions) {
    const bool far = f.value == Function::acosh || f.value == Function::log;
    const Columns x{uniform(far ? 2.0 : -0.6, far ? 4.0 : 0.6, 200, 3)};
    const auto text = [&](double a, double b) {
      const Expr inside = approximate(b) * variable(0) + number(Constant::of(Rational{1, 5}));
      return approximate(a) * call(f.value, inside) * power(inside + number(3), {-3, 2});
    };
    const std::vector<double> y = evaluate(text(1.5, 0.9), x, 200);
    EXPECT_LT(rms_error(refine_constants(text(1.4, 0.95), x, y, {.iterations = 40}), x, y), 1e-9) << f.name;
  }
}

TEST(Refine, FitsMoreConstantsThanABlockHoldsInTurn) {
  const Columns x{uniform(-1, 1, 400, 0)};
  std::vector<Expr> terms, truth;
  for (int k = 1; k <= 12; ++k) {
    terms.push_back(approximate(0.4) * call(Function::sin, number(k) * variable(0)));
    truth.push_back(approximate(1.0 / k) * call(Function::sin, number(k) * variable(0)));
  }
  const std::vector<double> y = evaluate(add(truth), x, 400);
  const Exec ex({.threads = 1});
  Work enough(ex, 1e6), none(ex, 0);
  const double before = rms_error(add(terms), x, y);
  const auto after = [&](Work& work) {
    return rms_error(refine_constants(add(terms), x, y, {.iterations = 30, .block = 5, .work = &work}), x, y);
  };
  EXPECT_LT(after(enough), 0.05 * before);
  EXPECT_GT(enough.used(), 0);
  EXPECT_EQ(after(none), before);
}

TEST(NoisySearch, OfOneVariableIsNotConsistentWithWhatItCannotExplain) {
  Table t;
  t.names = {"x"};
  t.x = {uniform(-5, 5, 400, 0)};
  const RandomStream noise(5, RandomUse::test, 2);
  for (std::size_t r = 0; r < 400; ++r)
    t.y.push_back((t.x[0][r] > 1 ? 4 : 0) + t.x[0][r] * std::cos(2.3 * t.x[0][r]) +
                  0.1 * noise.normal(static_cast<std::uint32_t>(r)));
  const Exec ex({.threads = 1});
  const NoisyResult r = search_noisy(ex, t);
  EXPECT_GT(r.noise, 0.05);
  EXPECT_LT(r.noise, 0.7);
  EXPECT_FALSE(r.formula);
  // A law that there is, is.
  for (std::size_t i = 0; i < 400; ++i) t.y[i] = 2 * t.x[0][i] + 0.1 * noise.normal(static_cast<std::uint32_t>(i));
  const NoisyResult line = search_noisy(ex, t);
  EXPECT_NEAR(line.noise, 0.1, 0.02);
  ASSERT_TRUE(line.formula);
  EXPECT_EQ(print(*line.formula, t.names, Notation::text), "2*x");
}

TEST(NoisySearch, FindsAProductThroughOnePercentOfNoise) {
  Table t;
  t.names = {"a", "b"};
  t.x = {uniform(1, 5, 500, 0), uniform(1, 5, 500, 1)};
  const RandomStream noise(5, RandomUse::test, 2);
  for (std::size_t r = 0; r < 500; ++r)
    t.y.push_back(0.5 * t.x[0][r] / (t.x[1][r] * t.x[1][r]) + 0.005 * noise.normal(static_cast<std::uint32_t>(r)));
  const Exec ex({.threads = 1});
  const NoisyResult r = search_noisy(ex, t);
  ASSERT_TRUE(r.formula);
  EXPECT_THAT(print(*r.formula, t.names, Notation::text), testing::AnyOf("a/(2*b^2)", testing::EndsWith("*a/b^2")));
  EXPECT_NEAR(r.noise, 0.005, 0.002);
}

}  // namespace
}  // namespace gradloom::formula
