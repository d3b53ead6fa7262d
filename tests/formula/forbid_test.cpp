#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <regex>

#include "gradloom/base/error.h"
#include "gradloom/base/random.h"
#include "gradloom/formula/contains.h"
#include "gradloom/formula/edges.h"
#include "gradloom/formula/noisy.h"
#include "gradloom/formula/parse.h"
#include "gradloom/formula/print.h"
#include "tests/support/sanitized.h"

namespace gradloom::formula {
namespace {

constexpr std::size_t kForbidRows = 80;
const std::vector<std::string> kForbidNames{"x", "z"};

Expr read_xz(const std::string& text) { return parse_expression(text, kForbidNames).value(); }

bool says(const std::string& text, const std::string& pattern) { return std::regex_search(text, std::regex(pattern)); }

// What a text divides by: names, calls and brackets behind each slash, with their exponents.
std::vector<std::string> denominators(const std::string& text) {
  std::vector<std::string> found;
  for (std::size_t at = text.find('/'); at != std::string::npos; at = text.find('/', at + 1)) {
    std::size_t end = at + 1;
    const auto take = [&](const auto& wanted) {
      while (end < text.size() && wanted(text[end])) ++end;
    };
    take([](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '.'; });
    if (end < text.size() && text[end] == '(') {
      int depth = 0;
      do depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
      while (++end < text.size() && depth > 0);
    }
    if (end < text.size() && text[end] == '^')
      take([](char c) { return c == '^' || std::isdigit(static_cast<unsigned char>(c)); });
    found.push_back(text.substr(at + 1, end - at - 1));
  }
  return found;
}

bool has_power(int n, const std::string& text) {
  const std::regex power("\\^([0-9]+)");
  for (std::sregex_iterator m(text.begin(), text.end(), power), end; m != end; ++m)
    if (std::stoi((*m)[1]) % n == 0) return true;
  return false;
}

// Whether a text has a function, found in the text alone: the exponents of n k, the name before a bracket.
bool text_has(const std::string& text, const std::string& name) {
  const std::vector<std::string> all = denominators(text);
  const auto below = [&](const auto& wanted) { return std::any_of(all.begin(), all.end(), wanted); };
  const auto varies = [](const std::string& d) { return says(d, "^\\(.*[xz]|^[a-z]"); };
  if (name == "gaussian") return says(text, "exp\\(") && has_power(2, text);
  if (name == "sigmoid") return below([](const std::string& d) { return says(d, "exp\\("); });
  if (name == "lorentz") return below([](const std::string& d) { return has_power(2, d); });
  if (name == "sqrt") return says(text, "sqrt\\(|\\^\\([0-9]+/2\\)");
  if (name == "1/sqrt") return below([](const std::string& d) { return says(d, "sqrt\\(|\\^\\([0-9]+/2\\)"); });
  if (name == "x^(3/2)") return says(text, "\\^\\((3|9|15)/2\\)");
  if (name == "1/x") return below(varies);
  if (name.starts_with("1/x^"))
    // The powers in a sum are not what is divided by.
    return below([&](const std::string& d) {
      return has_power(std::stoi(name.substr(4)), says(d, " [+-] ") ? d.substr(d.rfind(')')) : d);
    });
  if (name.starts_with("x^")) return has_power(std::stoi(name.substr(2)), text);
  return says(text, "(^|[^a-z])" + name + "\\(");
}

std::vector<double> forbid_column(double low, double high, std::uint32_t number) {
  std::vector<double> v;
  for (std::uint32_t r = 0; r < kForbidRows; ++r)
    v.push_back(low + (high - low) * RandomStream(7, RandomUse::test, 0, r).uniform(number));
  return v;
}

// y = f(x) + z, or f(x) z.
Table forbid_rows(const LibraryFunction& f, bool product) {
  Table t;
  t.names = kForbidNames;
  t.x = {forbid_column(f.name == "abs" ? -0.9 : 0.2, 0.9, 0), forbid_column(0.5, 2, 1)};
  t.y = evaluate(product ? f.text * variable(1) : f.text + variable(1), t.x, kForbidRows);
  return t;
}

NetworkSamples forbid_network(const Table& t, const LibraryFunction& f) {
  NetworkSamples s;
  s.widths = {2, 1, 1};
  s.node = {t.x, {t.y}};
  s.edge = {{evaluate(f.text, t.x, kForbidRows), t.x[1]}, {t.y}};
  s.bias = {{0.0}, {0.0}};
  s.input_mean = {0, 0}, s.input_scale = {1, 1}, s.output_mean = {0}, s.output_scale = {1};
  return s;
}

std::string spelled_text(const Functions& functions, const Expr& e) {
  return print(functions.spelled(e), kForbidNames, Notation::text);
}

std::vector<LibraryFunction> forbiddable() {
  std::vector<LibraryFunction> all;
  for (const LibraryFunction& f : library())
    if (can_be_found(f)) all.push_back(f);
  return all;
}

TEST(Forbid, EveryFunctionIsFoundInItself) {
  EXPECT_EQ(forbiddable().size() + 2, library().size());
  for (const LibraryFunction& f : forbiddable()) {
    EXPECT_TRUE(contains(f.text, f)) << f.name;
    const std::vector<Expr> inside{approximate(1.5) * variable(0) + approximate(0.3)};
    EXPECT_TRUE(contains(approximate(2) * substitute(f.text, inside) + variable(1), f)) << f.name;
    EXPECT_TRUE(text_has(print(f.text, kForbidNames, Notation::text), f.name)) << f.name;
    EXPECT_FALSE(contains(variable(0) * variable(1) + number(2), f)) << f.name;
  }
}

TEST(Forbid, WhatIsMadeOfAFunctionContainsIt) {
  const auto has = [](const std::string& text, const std::string& name) {
    const std::vector<LibraryFunction> all = forbiddable();
    const auto f = std::find_if(all.begin(), all.end(), [&](const LibraryFunction& g) { return g.name == name; });
    return contains(read_xz(text), *f);
  };
  for (const auto& [text, name] : std::vector<std::pair<std::string, std::string>>{{"z*x*x", "x^2"},
                                                                                   {"x^4", "x^2"},
                                                                                   {"z/x^2", "x^2"},
                                                                                   {"z/x^2", "1/x^2"},
                                                                                   {"z/x^2", "1/x"},
                                                                                   {"1/(1 + z)^6", "1/x^3"},
                                                                                   {"x^(3/2)", "sqrt"},
                                                                                   {"z/sqrt(x)", "sqrt"},
                                                                                   {"1/sqrt(x)", "1/x"},
                                                                                   {"exp(z - x^2)", "exp"},
                                                                                   {"exp(z - x^2)", "gaussian"},
                                                                                   {"exp(-x*(x + 1))", "gaussian"},
                                                                                   {"exp(-z*x^2)", "gaussian"},
                                                                                   {"exp(x)/(2 + 3*exp(x))", "sigmoid"},
                                                                                   {"1/sqrt(1 + exp(x))", "sigmoid"},
                                                                                   {"z/(3 + 2*x + x^2)", "lorentz"},
                                                                                   {"z/(1 + x*(x + 1))", "lorentz"},
                                                                                   {"cos(x^2)^2", "cos"}})
    EXPECT_TRUE(has(text, name)) << name << " in " << text;
  for (const auto& [text, name] : std::vector<std::pair<std::string, std::string>>{{"x^3", "x^2"},
                                                                                   {"x^2", "x^4"},
                                                                                   {"x^2", "1/x^2"},
                                                                                   {"x/3", "1/x"},
                                                                                   {"sqrt(2)*x", "sqrt"},
                                                                                   {"x^3", "x^(3/2)"},
                                                                                   {"exp(x^2)", "gaussian"},
                                                                                   {"exp(x*z)", "gaussian"},
                                                                                   {"exp(x)", "sigmoid"},
                                                                                   {"1/(exp(x) - 1)", "sigmoid"},
                                                                                   {"1/(1 - x^2)", "lorentz"},
                                                                                   {"x^2 + 1", "lorentz"},
                                                                                   {"asin(x)", "sin"}})
    EXPECT_FALSE(has(text, name)) << name << " in " << text;
}

TEST(Forbid, NoSearchFindsAFunctionThatIsForbidden) {
  const Exec ex({.threads = 1});
  const double effort = test::kSanitized ? 5 : 20;
  for (const LibraryFunction& f : forbiddable()) {
    const Functions functions({.forbid = {f.name}});
    const AllowedFormula allowed = [&](const Expr& e) { return functions.allows(e); };
    for (const bool product : {false, true}) {
      Table t = forbid_rows(f, product);
      if (const auto exact = search_formula(ex, t, {.effort = effort, .allowed = allowed}).formula) {
        EXPECT_FALSE(text_has(spelled_text(functions, *exact), f.name))
            << f.name << " in " << spelled_text(functions, *exact);
      }
      const RandomStream noise(5, RandomUse::test, 3);
      for (std::uint32_t r = 0; r < kForbidRows; ++r) t.y[r] += 0.01 * noise.normal(r);
      if (const auto near = search_noisy(ex, t, {.effort = effort, .allowed = allowed}).formula) {
        EXPECT_FALSE(text_has(spelled_text(functions, *near), f.name))
            << f.name << " in " << spelled_text(functions, *near);
      }
    }
  }
}

// The formula edge by edge has the function when it may, and not when it is forbidden.
TEST(Forbid, NoEdgeBecomesAFunctionThatIsForbidden) {
  const Exec ex({.threads = 1});
  for (const LibraryFunction& f : forbiddable()) {
    const Table t = forbid_rows(f, false);
    const NetworkSamples s = forbid_network(t, f);
    const auto made = [&](const FunctionOptions& options) {
      const Functions functions(options);
      EdgeFormulaOptions o;
      o.functions = functions;
      Work work(ex, 1e6);
      std::vector<ExplainedEdge> edges = explain_edges(work, s, score(s), o);
      return spelled_text(functions, edge_formula(work, s, edges, t, 0, functions));
    };
    EXPECT_TRUE(text_has(made({.functions = {f.name}}), f.name)) << f.name;
    const std::string without = made({.forbid = {f.name}});
    EXPECT_FALSE(text_has(without, f.name)) << f.name << " in " << without;
  }
}

// A first layer of one function and a second of another make a third.
TEST(Forbid, EdgesMakeNoForbiddenFunctionTogether) {
  struct Made {
    const char *first, *second, *together;
  };
  for (const Made& made : {Made{"x^2", "1/x", "lorentz"}, {"x^2", "exp", "gaussian"}, {"exp", "1/x", "sigmoid"}}) {
    const auto text = [&](const char* name) {
      return std::find_if(library().begin(), library().end(), [&](const auto& f) { return f.name == name; })->text;
    };
    Table t;
    t.names = {"x"}, t.x = {forbid_column(0.2, 1.5, 0)};
    const std::vector<double> inner = evaluate(text(made.first), t.x, kForbidRows);
    std::vector<double> arrives;  // 1 + f(x), with the sign that makes exp of it a gaussian
    for (const double v : inner) arrives.push_back(std::string(made.second) == "exp" ? 1 - v : 1 + v);
    t.y = evaluate(text(made.second), {arrives}, kForbidRows);
    NetworkSamples s;
    s.widths = {1, 1, 1};
    s.node = {{t.x[0]}, {arrives}}, s.edge = {{arrives}, {t.y}}, s.bias = {{0.0}, {0.0}};
    s.input_mean = {0}, s.input_scale = {1}, s.output_mean = {0}, s.output_scale = {1};
    const std::vector<std::string> both{made.first, made.second};
    const auto formula = [&](const std::vector<std::string>& forbid) {
      FunctionOptions options;
      options.functions = both, options.forbid = forbid;
      EdgeFormulaOptions o;
      o.functions = Functions(options);
      const Exec ex({.threads = 1});
      Work work(ex, 1e6);
      std::vector<ExplainedEdge> edges = explain_edges(work, s, score(s), o);
      return print(edge_formula(work, s, edges, t, 0, o.functions), t.names, Notation::text);
    };
    EXPECT_TRUE(text_has(formula({}), made.together)) << made.together << " in " << formula({});
    EXPECT_FALSE(text_has(formula({made.together}), made.together)) << formula({made.together});
  }
}

// y = x / (1 + z^2): the last hidden node multiplies x and 1/(1 + z^2). All candidates of that factor are forbidden, so
// it is fitted again, to its own values.
TEST(Forbid, AFactorOfAProductIsFittedAgainToItsOwnValues) {
  Table t;
  t.names = kForbidNames;
  t.x = {forbid_column(0.5, 1.5, 0), forbid_column(0.2, 1.5, 1)};
  const std::vector<double> none(kForbidRows, 0.0);
  std::vector<double> square, above, factor;
  for (std::uint32_t r = 0; r < kForbidRows; ++r) {
    square.push_back(t.x[1][r] * t.x[1][r]);
    above.push_back(1 + square[r]);
    factor.push_back(1 / above[r]);
    t.y.push_back(t.x[0][r] * factor[r]);
  }
  NetworkSamples s;
  s.widths = {2, 2, 2, 1}, s.multiply = {0, 1};
  s.node = {t.x, {t.x[0], above}, {none, t.y}};
  s.edge = {{t.x[0], none, none, square}, {none, t.x[0], none, none, none, factor}, {none, t.y}};
  s.bias = {{0, 1}, {0, 0, 0}, {0}};
  s.input_mean = {0, 0}, s.input_scale = {1, 1}, s.output_mean = {0}, s.output_scale = {1};
  EdgeFormulaOptions o;
  o.functions = Functions({.forbid = {"lorentz"}});
  o.fit.most = 1;
  const Exec ex({.threads = 1});
  Work work(ex, 1e6);
  std::vector<ExplainedEdge> edges = explain_edges(work, s, score(s), o);
  const auto found = std::find_if(edges.begin(), edges.end(),
                                  [](const ExplainedEdge& e) { return e.layer == 1 && e.from == 1 && e.to == 2; });
  ASSERT_EQ(found->candidates.size(), 1u);
  EXPECT_EQ(found->candidates.front().function, "1/x");
  edge_formula(work, s, edges, t, 0, o.functions);
  ASSERT_FALSE(found->candidates.empty());
  const EdgeCandidate& other = found->candidates.front();
  EXPECT_NE(other.function, "1/x");
  const std::vector<double> made = evaluate(other.text, {above}, kForbidRows);
  for (std::uint32_t r = 0; r < kForbidRows; ++r) EXPECT_NEAR(made[r], factor[r], 0.1) << other.function;
}

TEST(Forbid, NumbersAreSpelledWithoutIt) {
  const Functions functions({.forbid = {"sqrt", "exp"}});
  EXPECT_EQ(spelled_text(functions, read_xz("sqrt(2)*x + z")), "z + 1.4142135623730951*x");
  EXPECT_EQ(spelled_text(functions, read_xz("e*x")), "2.718281828459045*x");
  EXPECT_EQ(spelled_text(Functions({.forbid = {"sin"}}), read_xz("sqrt(2)*x")), "sqrt(2)*x");
  EXPECT_EQ(spelled_text(Functions({.forbid = {"x^2"}}), read_xz("pi^2*x")), "9.869604401089358*x");
}

std::string forbid_refusal(const FunctionOptions& options) {
  try {
    Functions f(options);
  } catch (const Exception& e) {
    return e.what();
  }
  return "";
}

TEST(Forbid, WhatCannotBeForbiddenIsRefusedByName) {
  using testing::AllOf, testing::HasSubstr;
  EXPECT_THAT(forbid_refusal({.forbid = {"x"}}), AllOf(HasSubstr("forbid \"x\""), HasSubstr("0.1.2 x")));
  EXPECT_THAT(forbid_refusal({.forbid = {"0"}}), HasSubstr("forbid \"0\""));
  EXPECT_THAT(forbid_refusal({.define = {"hill = x^3/(1 + x^3)"}, .forbid = {"hill"}}),
              HasSubstr("leave out its definition"));
  EXPECT_THAT(forbid_refusal({.define = {"hill = x^3/(1 + x^3)"}, .forbid = {"x^3"}}),
              HasSubstr("'hill' is made of x^3, which is forbidden"));
  EXPECT_THAT(forbid_refusal({.forbid = {"exp"}, .fix = {"0.0.0 gaussian"}}), HasSubstr("forbidden there"));
  EXPECT_EQ(forbid_refusal({.define = {"hill = x^3/(1 + x^3)"}, .forbid = {"0.1.2 x", "0.1.2 0", "0.1.2 hill"}}), "");
}

TEST(Forbid, AnEdgeDoesNotBecomeWhatIsMadeOfWhatIsForbiddenOnIt) {
  const Functions f({.forbid = {"0.1.2 exp"}});
  for (const LibraryFunction& g : f.of_edge(0, 1, 2)) {
    EXPECT_NE(g.name, "exp");
    EXPECT_NE(g.name, "gaussian");
  }
  EXPECT_EQ(f.of_edge(0, 0, 0).size(), library().size());
}

}  // namespace
}  // namespace gradloom::formula
