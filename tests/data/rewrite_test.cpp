// Expressions and the rules that simplify them: each rule, what passes mean, what the generator promises.
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "gradloom/base/error.h"
#include "gradloom/data/rewrite_dataset.h"

namespace gradloom {
namespace {

std::string after_one_pass(const std::string& text) {
  const Expression e = parse_expression(text);
  return to_text(apply_edits(e, plan_pass(e)));
}

struct RuleCase {
  Rule rule;
  const char *before, *after;
};

TEST(RewriteRules, EachRuleDoesWhatItSays) {
  const RuleCase cases[] = {
      {Rule::add_zero, "(x+0)", "x"},
      {Rule::add_zero, "(0+(x/y))", "(x/y)"},
      {Rule::subtract_zero, "(x-0)", "x"},
      {Rule::zero_minus, "(0-(x/y))", "(-(x/y))"},
      {Rule::times_zero, "((x+y)*0)", "0"},
      {Rule::times_zero, "(0*(x+y))", "0"},
      {Rule::times_one, "(1*x)", "x"},
      {Rule::times_one, "((x/y)*1)", "(x/y)"},
      {Rule::over_one, "(x/1)", "x"},
      {Rule::to_the_zero, "((x/y)^0)", "1"},
      {Rule::to_the_one, "(x^1)", "x"},
      {Rule::one_to_the, "(1^(x+y))", "1"},
      {Rule::fold, "(1+2)", "3"},
      {Rule::fold, "(4-3)", "1"},
      {Rule::fold, "(2*2)", "4"},
      {Rule::fold, "(4/2)", "2"},
      {Rule::fold, "(2^2)", "4"},
      {Rule::double_negation, "(-(-(x+y)))", "(x+y)"},
      {Rule::negate_zero, "(-0)", "0"},
      {Rule::add_negated, "(x+(-y))", "(x-y)"},
      {Rule::subtract_negated, "(x-(-(y/z)))", "(x+(y/z))"},
      {Rule::minus_itself, "(x-x)", "0"},
      {Rule::twice, "(z+z)", "(2*z)"},
      {Rule::square, "(y*y)", "(y^2)"},
      {Rule::both_yes, "(T&p)", "p"},
      {Rule::both_no, "((p|q)&F)", "F"},
      {Rule::either_no, "(p|F)", "p"},
      {Rule::either_yes, "(T|(p&q))", "T"},
      {Rule::opposite_constant, "(!T)", "F"},
      {Rule::opposite_constant, "(!F)", "T"},
      {Rule::double_opposite, "(!(!p))", "p"},
      {Rule::both_same, "(q&q)", "q"},
      {Rule::either_same, "(r|r)", "r"},
      {Rule::implication, "(p>q)", "((!p)|q)"},
  };
  std::set<Rule> seen;
  for (const RuleCase& c : cases) {
    EXPECT_EQ(match(parse_expression(c.before), 0), c.rule)
        << c.before << " " << rule_name(match(parse_expression(c.before), 0));
    EXPECT_EQ(after_one_pass(c.before), c.after) << c.before;
    seen.insert(c.rule);
  }
  EXPECT_EQ(seen.size(), kRules);
  EXPECT_GE(kRules, 12u);
}

TEST(RewriteRules, LeaveAloneWhatTheyAreNotFor) {
  for (const char* text : {"(x-y)", "(x+y)", "((x+y)-(x+y))", "(3+2)", "(1-2)", "(3/2)", "(3^2)", "(2/0)", "(-x)",
                           "(-2)", "(0/x)", "(0^x)", "(x&y)", "(p|q)", "(!p)", "x", "(-_)", "(x+_)"})
    EXPECT_EQ(after_one_pass(text), text);
}

TEST(RewriteRules, OnePassRewritesEverythingThatMatchesAtOnce) {
  EXPECT_EQ(after_one_pass("(((x*1)+0)*((y-0)^1))"), "(x*y)");
  EXPECT_EQ(after_one_pass("((1+1)+(1+2))"), "(2+3)");        // the sum of the sums is for the next pass
  EXPECT_EQ(after_one_pass("(-(-(-x)))"), "(-x)");            // the lower pair
  EXPECT_EQ(after_one_pass("(x-(-(-y)))"), "(x+(-y))");       // the upper rule takes the upper negation
  EXPECT_EQ(after_one_pass("((p&T)>(q|F))"), "((!p)|q)");     // an insertion above what takes a node's place
  EXPECT_EQ(after_one_pass("((p>q)>r)"), "((!((!p)|q))|r)");  // several insertions
}

TEST(RewriteRules, APassIsMadeOfTheRulesAtItsPlaces) {
  const Expression e = parse_expression("(((x*1)+0)*(y-(z>p)))");
  EXPECT_THAT(pass_places(e), ::testing::ElementsAre(1u, 2u, 8u));
  EXPECT_EQ(to_text(apply_edits(e, plan_rule(e, 1))), "((x*1)*(y-(z>p)))");
  EXPECT_EQ(to_text(apply_edits(e, plan_rule(e, 2))), "((x+0)*(y-(z>p)))");
  EXPECT_EQ(to_text(apply_edits(e, plan_rule(e, 8))), "(((x*1)+0)*(y-((!z)|p)))");
  // What a rule erases has no places.
  EXPECT_THAT(pass_places(parse_expression("((x*1)*0)")), ::testing::ElementsAre(0u));
}

TEST(Expressions, TextReadsBackAsItWasWritten) {
  for (int k = 0; k < 300; ++k) {
    const Expression e = random_expression(RandomStream(7, RandomUse::test, 0, k), 1 + k % 40);
    EXPECT_EQ(e.size(), static_cast<std::size_t>(1 + k % 40));
    EXPECT_EQ(parse_expression(to_text(e)), e);
  }
  for (const char* text : {"(", "(x", "(x+", "(x+y", "x+y", "()", "(x y)", "w", "(x+y))", "(+x)"})
    EXPECT_THROW(parse_expression(text), Exception) << text;
  EXPECT_THROW(parse_expression(std::string(5000, '(')), Exception);
}

// By definition, with numbers for the variables; logic counts T as 1.
double value(const Expression& e, std::uint32_t v, const std::array<double, 6>& variables) {
  const Symbol s = e.symbol[v];
  if (is_constant(s)) return constant_value(s);
  if (s == Symbol::yes || s == Symbol::no) return s == Symbol::yes;
  if (s >= Symbol::p) return variables[3 + (std::size_t(s) - std::size_t(Symbol::p))];
  if (s >= Symbol::x && s <= Symbol::z) return variables[std::size_t(s) - std::size_t(Symbol::x)];
  const double a = value(e, e.child[v][0], variables), b = arity(s) == 2 ? value(e, e.child[v][1], variables) : 0.0;
  switch (s) {
    case Symbol::add:
      return a + b;
    case Symbol::subtract:
      return a - b;
    case Symbol::multiply:
      return a * b;
    case Symbol::divide:
      return a / b;
    case Symbol::power:
      return std::pow(a, b);
    case Symbol::negate:
      return -a;
    case Symbol::both:
      return a * b;
    case Symbol::either:
      return std::max(a, b);
    case Symbol::opposite:
      return 1 - a;
    default:
      return std::max(1 - a, b);
  }
}

TEST(RewriteRules, NormalFormsHaveTheSameValue) {
  std::size_t compared = 0;
  for (std::uint32_t k = 0; k < 2000; ++k) {
    const RandomStream random(8, RandomUse::test, 0, k);
    const Expression e = random_expression(random, 5 + k % 30), n = normal_form(e);
    for (std::uint32_t bits = 0; bits < 8; ++bits) {
      const std::array<double, 6> variables = {
          1.25, 0.75, 1.5, double(bits & 1), double(bits >> 1 & 1), double(bits >> 2)};
      const double a = value(e, 0, variables), b = value(n, 0, variables);
      // A division by zero or a root of a negative number that a rule drops has no value to compare.
      if (!std::isfinite(a) || !std::isfinite(b) || std::abs(a) > 1e8) continue;
      EXPECT_NEAR(a, b, 1e-9 * std::max(1.0, std::abs(a))) << to_text(e) << " -> " << to_text(n);
      ++compared;
    }
  }
  EXPECT_GT(compared, 8000u);
}

// The rules once more, as pairs of patterns, and terms that know nothing of the library: u and v match anything, a any
// variable.
struct Term {
  char name = 0;
  std::vector<Term> kids;
  bool operator==(const Term&) const = default;
};

Term parse_term(const std::string& text, std::size_t& at) {
  if (text[at] != '(') return {text[at++], {}};
  ++at;
  if (text[at] == '-' || text[at] == '!') {
    const char name = text[at] == '-' ? 'n' : '!';
    Term kid = parse_term(text, ++at);
    ++at;
    return {name, {std::move(kid)}};
  }
  Term left = parse_term(text, at);
  const char name = text[at++];
  Term right = parse_term(text, at);
  ++at;
  return {name, {std::move(left), std::move(right)}};
}
Term term(const std::string& text) {
  std::size_t at = 0;
  return parse_term(text, at);
}
std::string text_of(const Term& t) {
  if (t.kids.empty()) return {t.name};
  if (t.kids.size() == 1) return std::string("(") + (t.name == 'n' ? '-' : t.name) + text_of(t.kids[0]) + ")";
  return "(" + text_of(t.kids[0]) + t.name + text_of(t.kids[1]) + ")";
}

using Bindings = std::map<char, Term>;
bool matches(const Term& pattern, const Term& t, Bindings& bound) {
  const bool any = pattern.name == 'u' || pattern.name == 'v', variable = pattern.name == 'a';
  if (any || variable) {
    if (variable && (!t.kids.empty() || std::string("xyzpqr").find(t.name) == std::string::npos)) return false;
    const auto [it, fresh] = bound.emplace(pattern.name, t);
    return fresh || it->second == t;
  }
  if (pattern.name != t.name || pattern.kids.size() != t.kids.size()) return false;
  for (std::size_t k = 0; k < t.kids.size(); ++k)
    if (!matches(pattern.kids[k], t.kids[k], bound)) return false;
  return true;
}
Term filled(const Term& pattern, const Bindings& bound) {
  if (const auto it = bound.find(pattern.name); it != bound.end()) return it->second;
  Term t{pattern.name, {}};
  for (const Term& kid : pattern.kids) t.kids.push_back(filled(kid, bound));
  return t;
}

std::vector<std::pair<Term, Term>> all_patterns() {
  std::vector<std::pair<Term, Term>> rules;
  const std::pair<const char*, const char*> texts[] = {
      {"(u+0)", "u"},        {"(0+u)", "u"}, {"(u-0)", "u"},       {"(0-u)", "(-u)"},  {"(u*0)", "0"},
      {"(0*u)", "0"},        {"(u*1)", "u"}, {"(1*u)", "u"},       {"(u/1)", "u"},     {"(u^0)", "1"},
      {"(u^1)", "u"},        {"(1^u)", "1"}, {"(-(-u))", "u"},     {"(-0)", "0"},      {"(u+(-v))", "(u-v)"},
      {"(u-(-v))", "(u+v)"}, {"(a-a)", "0"}, {"(a+a)", "(2*a)"},   {"(a*a)", "(a^2)"}, {"(u&T)", "u"},
      {"(T&u)", "u"},        {"(u&F)", "F"}, {"(F&u)", "F"},       {"(u|F)", "u"},     {"(F|u)", "u"},
      {"(u|T)", "T"},        {"(T|u)", "T"}, {"(!T)", "F"},        {"(!F)", "T"},      {"(!(!u))", "u"},
      {"(a&a)", "a"},        {"(a|a)", "a"}, {"(u>v)", "((!u)|v)"}};
  for (const auto& [from, to] : texts) rules.emplace_back(term(from), term(to));
  for (int a = 0; a <= 4; ++a)
    for (int b = 0; b <= 4; ++b) {
      const auto fold = [&](char op, double result) {
        if (!(result >= 0 && result <= 4 && result == std::floor(result))) return;
        rules.emplace_back(Term{op, {{char('0' + a), {}}, {char('0' + b), {}}}}, Term{char('0' + int(result)), {}});
      };
      fold('+', a + b), fold('-', a - b), fold('*', a * b), fold('^', std::pow(a, b));
      if (b > 0) fold('/', double(a) / b);
    }
  return rules;
}

void subterms(Term& t, std::vector<Term*>& all) {
  all.push_back(&t);
  for (Term& kid : t.kids) subterms(kid, all);
}

TEST(RewriteRules, AnyOrderOfSingleStepsEndsInTheSameNormalForm) {
  const auto rules = all_patterns();
  std::size_t steps = 0;
  for (std::uint32_t k = 0; k < 600; ++k) {
    const RandomStream random(9, RandomUse::test, 0, k);
    const Expression e = random_expression(random, 5 + k % 36);
    Term t = term(to_text(e));
    for (std::uint32_t draw = 1000000;;) {
      std::vector<Term*> places;
      subterms(t, places);
      std::vector<std::pair<Term*, Term>> possible;
      for (Term* place : places)
        for (const auto& [from, to] : rules) {
          Bindings bound;
          if (matches(from, *place, bound)) possible.emplace_back(place, filled(to, bound));
        }
      if (possible.empty()) break;
      auto& [place, result] = possible[random.below(draw++, static_cast<std::uint32_t>(possible.size()))];
      const Term copy = result;
      *place = copy;
      ASSERT_LT(++steps, 100000u);
    }
    EXPECT_EQ(text_of(t), to_text(normal_form(e))) << to_text(e);
  }
  EXPECT_GT(steps, 1000u);
}

ExpressionSetOptions some_expressions() {
  ExpressionSetOptions o;
  o.seed = 3, o.train = 400, o.validation = 100, o.test = 200, o.large = 50;
  return o;
}

TEST(ExpressionSets, HaveTheSizesAskedForAndShareNothing) {
  const ExpressionSets sets = draw_expressions(some_expressions());
  EXPECT_EQ(sets.train.size(), 400u);
  EXPECT_EQ(sets.validation.size(), 100u);
  EXPECT_EQ(sets.test.size(), 200u);
  EXPECT_EQ(sets.large.size(), 50u);
  std::set<std::string> all;
  std::size_t largest = 0, smallest = 1000;
  for (const auto* part : {&sets.train, &sets.validation, &sets.test})
    for (const Expression& e : *part) {
      EXPECT_TRUE(all.insert(to_text(e)).second);
      largest = std::max(largest, e.size()), smallest = std::min(smallest, e.size());
    }
  EXPECT_EQ(smallest, 5u);
  EXPECT_EQ(largest, 25u);
  for (const Expression& e : sets.large) {
    EXPECT_TRUE(all.insert(to_text(e)).second);
    EXPECT_GE(e.size(), 26u);
    EXPECT_LE(e.size(), 40u);
  }
}

TEST(ExpressionSets, KeepingEverythingIsRightForAtMostATenth) {
  const ExpressionSets sets = draw_expressions(some_expressions());
  for (const auto* part : {&sets.train, &sets.validation, &sets.test, &sets.large}) {
    std::size_t plain = 0;
    for (const Expression& e : *part) plain += keeps_everything(plan_pass(e));
    EXPECT_LE(10 * plain, part->size());
  }
}

TEST(ExpressionSets, AreAFunctionOfTheSeed) {
  ExpressionSetOptions o = some_expressions();
  const ExpressionSets a = draw_expressions(o), b = draw_expressions(o);
  EXPECT_EQ(a.train, b.train);
  o.train = 10;
  EXPECT_EQ(draw_expressions(o).test, a.test);  // what is held out does not depend on what is trained on
  o.seed = 4;
  EXPECT_NE(draw_expressions(o).test, a.test);
  o.least_nodes = 30;
  EXPECT_THROW(draw_expressions(o), Exception);
  o.least_nodes = o.most_nodes = 1;
  EXPECT_THROW(draw_expressions(o), Exception);  // there are not so many
}

TEST(RewriteSamples, EditsMakeTheTargetAndTheLastPassKeepsEverything) {
  const ExpressionSets sets = draw_expressions(some_expressions());
  const auto samples = pass_samples(sets.train, sets.test);
  std::set<std::string> sources;
  for (const Expression& e : sets.test) sources.insert(to_text(e));
  std::size_t kept = 0;
  for (const RewriteSample& s : samples) {
    EXPECT_TRUE(sources.insert(to_text(s.source)).second);
    EXPECT_EQ(apply_edits(s.source, s.edits), s.target);
    EXPECT_EQ(keeps_everything(s.edits), s.source == s.target);
    kept += s.source == s.target;
    // Classes and edits are two words for the same.
    for (const NodeEdit& d : s.edits) {
      const NodeEdit back = edit_of(edit_class(d), insert_class(d));
      EXPECT_EQ(back.kind, d.kind);
      EXPECT_EQ(back.insert, d.insert);
      EXPECT_TRUE(d.kind != EditKind::relabel || back.symbol == d.symbol);
    }
    // Every node that has an image has the symbol that its edit gives it.
    const auto image = trace_edits(s.source, s.edits);
    for (std::size_t v = 0; v < image.size(); ++v) {
      EXPECT_EQ(image[v] == kNoNode, s.edits[v].kind == EditKind::erase);
      if (image[v] == kNoNode) continue;
      EXPECT_EQ(s.target.symbol[image[v]],
                s.edits[v].kind == EditKind::relabel ? s.edits[v].symbol : s.source.symbol[v]);
    }
  }
  EXPECT_GT(kept, 0u);
  EXPECT_GT(samples.size(), sets.train.size());
}

TEST(RewriteSamples, AnyEditsMakeSomething) {
  for (std::uint32_t k = 0; k < 500; ++k) {
    const RandomStream random(10, RandomUse::test, 0, k);
    const Expression e = random_expression(random, 1 + k % 30);
    std::vector<NodeEdit> edits;
    for (std::uint32_t v = 0; v < e.size(); ++v)
      edits.push_back(edit_of(random.below(500 + 2 * v, 3) == 0 ? 1 : random.below(501 + 2 * v, kEditClasses),
                              random.below(2000 + v, kInsertClasses)));
    const Expression result = apply_edits(e, edits);
    EXPECT_LE(result.size(), 2 * e.size());
    EXPECT_EQ(parse_expression(to_text(result)), result);
    normal_form(result);  // ends also for expressions that lack children
  }
  EXPECT_THROW(apply_edits(parse_expression("(x+y)"), std::vector<NodeEdit>(2)), Exception);
}

TEST(TreeDatasets, BatchesAreTheTreesAskedFor) {
  std::vector<RewriteSample> samples;
  for (const char* text : {"(x+0)", "y", "((-x)*(y+z))"}) samples.push_back(make_sample(parse_expression(text)));
  const TreeDataset<float> data(samples, {});
  EXPECT_EQ(data.most_nodes(), 6u);
  auto storage = data.make_storage(2);
  const std::uint32_t which[] = {2, 0};
  const auto b = data.gather(which, storage);
  EXPECT_THAT(b.graph_ptr, ::testing::ElementsAre(0u, 6u, 9u));
  EXPECT_THAT(b.parent, ::testing::ElementsAre(kNoNode, 0u, 1u, 0u, 3u, 3u, kNoNode, 6u, 6u));
  EXPECT_THAT(b.left, ::testing::ElementsAre(1u, 2u, kNoNode, 4u, kNoNode, kNoNode, 7u, kNoNode, kNoNode));
  EXPECT_THAT(b.right, ::testing::ElementsAre(3u, kNoNode, kNoNode, 5u, kNoNode, kNoNode, 8u, kNoNode, kNoNode));
  EXPECT_THAT(b.edit, ::testing::ElementsAre(0, 0, 0, 0, 0, 0, 1, 0, 1));
  EXPECT_THAT(b.sample, ::testing::ElementsAre(2u, 0u));
  const std::uint32_t three[] = {0, 1, 2}, far[] = {3};
  EXPECT_THROW(data.gather(three, storage), Exception);
  EXPECT_THROW(data.gather(far, storage), Exception);
  EXPECT_THROW(TreeDataset<float>({}, {}), Exception);
  samples[0].edits.pop_back();
  EXPECT_THROW(TreeDataset<float>(samples, {}), Exception);
}

}  // namespace
}  // namespace gradloom
