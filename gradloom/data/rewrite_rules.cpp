#include "gradloom/data/rewrite_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

constexpr std::array<std::string_view, kRules> kRuleNames = {
    "u+0",    "u-0", "0-u", "u*0", "u*1", "u/1", "u^0", "u^1", "1^u", "c+c", "-(-u)", "-0",  "u+(-v)",
    "u-(-v)", "x-x", "x+x", "x*x", "u&T", "u&F", "u|F", "u|T", "!T",  "!!u", "x&x",   "x|x", "u>v"};

std::optional<Symbol> folded(Symbol op, unsigned a, unsigned b) {
  unsigned value = 5;
  if (op == Symbol::add) value = a + b;
  if (op == Symbol::subtract && a >= b) value = a - b;
  if (op == Symbol::multiply) value = a * b;
  if (op == Symbol::divide && b > 0 && a % b == 0) value = a / b;
  if (op == Symbol::power) {
    value = 1;
    for (unsigned k = 0; k < b; ++k) value *= a;
  }
  if (value > 4) return std::nullopt;
  return constant_of(value);
}

// What a rule sees of a node.
struct Sight {
  Symbol s;
  std::optional<Symbol> left, right, inner_left, inner_right;  // inner: the left child of a child

  Sight(const Expression& e, std::uint32_t v) : s(e.symbol[v]) {
    const auto [l, r] = e.child[v];
    const auto look = [&](std::uint32_t c, std::optional<Symbol>& at, std::optional<Symbol>& inner) {
      if (c == kNoNode) return;
      at = e.symbol[c];
      if (e.child[c][0] != kNoNode) inner = e.symbol[e.child[c][0]];
    };
    look(l, left, inner_left), look(r, right, inner_right);
  }
  bool either_is(Symbol c) const { return left == c || right == c; }
  bool same_variable() const { return left == right && is_variable(*left); }
};

Rule match_arithmetic(const Sight& n) {
  switch (n.s) {
    case Symbol::add:
      if (n.either_is(Symbol::zero)) return Rule::add_zero;
      break;
    case Symbol::subtract:
      if (n.right == Symbol::zero) return Rule::subtract_zero;
      if (n.left == Symbol::zero) return Rule::zero_minus;
      break;
    case Symbol::multiply:
      if (n.either_is(Symbol::zero)) return Rule::times_zero;
      if (n.either_is(Symbol::one)) return Rule::times_one;
      break;
    case Symbol::divide:
      if (n.right == Symbol::one) return Rule::over_one;
      break;
    default:
      if (n.right == Symbol::zero) return Rule::to_the_zero;
      if (n.right == Symbol::one) return Rule::to_the_one;
      if (n.left == Symbol::one) return Rule::one_to_the;
      break;
  }
  if (is_constant(*n.left) && is_constant(*n.right) && folded(n.s, constant_value(*n.left), constant_value(*n.right)))
    return Rule::fold;
  if (n.s == Symbol::add && n.right == Symbol::negate) return Rule::add_negated;
  if (n.s == Symbol::subtract && n.right == Symbol::negate) return Rule::subtract_negated;
  if (!n.same_variable()) return Rule::none;
  return n.s == Symbol::subtract   ? Rule::minus_itself
         : n.s == Symbol::add      ? Rule::twice
         : n.s == Symbol::multiply ? Rule::square
                                   : Rule::none;
}

Rule match_logic(const Sight& n) {
  if (n.s == Symbol::implies) return Rule::implication;
  const bool both = n.s == Symbol::both;
  if (n.either_is(both ? Symbol::no : Symbol::yes)) return both ? Rule::both_no : Rule::either_yes;
  if (n.either_is(both ? Symbol::yes : Symbol::no)) return both ? Rule::both_yes : Rule::either_no;
  if (n.same_variable()) return both ? Rule::both_same : Rule::either_same;
  return Rule::none;
}

enum class Reach { everywhere, one_rule };

class Planner {
 public:
  Planner(const Expression& e, Reach reach) : e_(e), reach_(reach), edits_(e.size()) {}
  std::vector<NodeEdit> run() {
    if (e_.size() > 0) plan(0);
    return std::move(edits_);
  }
  // The rule at this node and no other.
  std::vector<NodeEdit> run_at(std::uint32_t v) {
    rewrite(v);
    return std::move(edits_);
  }
  const std::vector<std::uint32_t>& places() const { return places_; }

 private:
  void relabel(std::uint32_t v, Symbol s) { edits_[v].kind = EditKind::relabel, edits_[v].symbol = s; }
  void erase(std::uint32_t v) { edits_[v].kind = EditKind::erase; }
  void erase_subtree(std::uint32_t v) {
    for (std::uint32_t i = v; i < e_.end_of(v); ++i) erase(i);
  }
  void plan_children(std::uint32_t v) {
    for (const std::uint32_t c : e_.child[v])
      if (c != kNoNode) plan(c);
  }
  // The node gives way to its child on this side.
  void hand_over(std::uint32_t v, unsigned side) {
    erase(v);
    if (e_.child[v][1 - side] != kNoNode) erase_subtree(e_.child[v][1 - side]);
    plan(e_.child[v][side]);
  }
  void become(std::uint32_t v, Symbol s) {
    relabel(v, s);
    for (const std::uint32_t c : e_.child[v])
      if (c != kNoNode) erase_subtree(c);
  }
  // The same, unless a child is what is asked for: then that child stays.
  void settle(std::uint32_t v, Symbol s) {
    for (const unsigned side : {0u, 1u})
      if (e_.symbol[e_.child[v][side]] == s) return hand_over(v, side);
    become(v, s);
  }
  unsigned side_of(std::uint32_t v, Symbol s) const { return e_.symbol[e_.child[v][0]] == s ? 0 : 1; }
  // What a rule keeps is looked at in turn, unless one rule alone is asked for.
  void plan(std::uint32_t v) {
    if (reach_ == Reach::everywhere) rewrite(v);
  }
  void rewrite(std::uint32_t v);

  const Expression& e_;
  Reach reach_;
  std::vector<NodeEdit> edits_;
  std::vector<std::uint32_t> places_;
};

void Planner::rewrite(std::uint32_t v) {
  const auto [left, right] = e_.child[v];
  const Rule rule = match(e_, v);
  if (rule != Rule::none) places_.push_back(v);
  switch (rule) {
    case Rule::add_zero:
      return hand_over(v, 1 - side_of(v, Symbol::zero));
    case Rule::times_one:
      return hand_over(v, 1 - side_of(v, Symbol::one));
    case Rule::both_yes:
      return hand_over(v, 1 - side_of(v, Symbol::yes));
    case Rule::either_no:
      return hand_over(v, 1 - side_of(v, Symbol::no));
    case Rule::times_zero:
      return hand_over(v, side_of(v, Symbol::zero));
    case Rule::both_no:
      return hand_over(v, side_of(v, Symbol::no));
    case Rule::either_yes:
      return hand_over(v, side_of(v, Symbol::yes));
    case Rule::subtract_zero:
    case Rule::over_one:
    case Rule::to_the_one:
    case Rule::one_to_the:
    case Rule::negate_zero:
    case Rule::both_same:
    case Rule::either_same:
      return hand_over(v, 0);
    case Rule::zero_minus:
      relabel(v, Symbol::negate);
      erase(left);
      return plan(right);
    case Rule::to_the_zero:
      return settle(v, Symbol::one);
    case Rule::fold:
      return settle(v, *folded(e_.symbol[v], constant_value(e_.symbol[left]), constant_value(e_.symbol[right])));
    case Rule::minus_itself:
      return become(v, Symbol::zero);
    case Rule::opposite_constant:
      return become(v, e_.symbol[left] == Symbol::yes ? Symbol::no : Symbol::yes);
    case Rule::double_negation:
    case Rule::double_opposite:
      erase(v), erase(left);
      return plan(e_.child[left][0]);
    case Rule::add_negated:
    case Rule::subtract_negated:
      relabel(v, e_.symbol[v] == Symbol::add ? Symbol::subtract : Symbol::add);
      erase(right);
      plan(left);
      return plan(e_.child[right][0]);
    case Rule::twice:
      relabel(v, Symbol::multiply);
      return relabel(left, Symbol::two);
    case Rule::square:
      relabel(v, Symbol::power);
      return relabel(right, Symbol::two);
    case Rule::implication:
      relabel(v, Symbol::either);
      plan_children(v);
      edits_[left].insert = true, edits_[left].inserted = Symbol::opposite;
      return;
    case Rule::none:
      return plan_children(v);
  }
}

// Builds in preorder. A node that will get no place is never visited.
class Builder {
 public:
  Builder(const Expression& e, std::span<const NodeEdit> edits)
      : e_(e), edits_(edits), left_(e.size()), image_(e.size(), kNoNode) {
    // Children come behind their parents.
    for (std::size_t v = e.size(); v-- > 0;) {
      left_[v] = edits[v].kind != EditKind::erase;
      for (const std::uint32_t c : e.child[v]) left_[v] = left_[v] || (c != kNoNode && left_[c]);
    }
    if (e.size() > 0 && left_[0]) build(0, kNoNode, 0);
  }
  Expression result;
  const std::vector<std::uint32_t>& image() const { return image_; }

 private:
  void build(std::uint32_t v, std::uint32_t under, unsigned side) {
    const NodeEdit& edit = edits_[v];
    if (edit.insert) under = result.append(edit.inserted, under, side), side = 0;
    if (edit.kind == EditKind::erase) {
      for (const std::uint32_t c : e_.child[v])
        if (c != kNoNode && edits_[c].kind != EditKind::erase) return build(c, under, side);
      for (const std::uint32_t c : e_.child[v])
        if (c != kNoNode && left_[c]) return build(c, under, side);
      return;
    }
    const Symbol s = edit.kind == EditKind::relabel ? edit.symbol : e_.symbol[v];
    image_[v] = result.append(s, under, side);
    unsigned used = 0;
    for (const std::uint32_t c : e_.child[v])
      if (c != kNoNode && left_[c] && used < arity(s)) build(c, image_[v], used++);
  }

  const Expression& e_;
  std::span<const NodeEdit> edits_;
  std::vector<std::uint8_t> left_;  // something is left of this subtree
  std::vector<std::uint32_t> image_;
};

void check_edits(const Expression& e, std::span<const NodeEdit> edits) {
  if (edits.size() != e.size()) throw_invalid(fmt::format("{} edits for {} nodes", edits.size(), e.size()));
}

}  // namespace

std::string_view rule_name(Rule rule) {
  return rule == Rule::none ? "none" : kRuleNames[static_cast<std::size_t>(rule)];
}

Rule match(const Expression& e, std::uint32_t node) {
  const Sight n(e, node);
  if (arity(n.s) == 0 || !n.left || (arity(n.s) == 2 && !n.right)) return Rule::none;
  if (n.s == Symbol::negate) {
    if (n.left == Symbol::zero) return Rule::negate_zero;
    return n.left == Symbol::negate && n.inner_left && n.inner_left != Symbol::negate ? Rule::double_negation
                                                                                      : Rule::none;
  }
  if (n.s == Symbol::opposite) {
    if (n.left == Symbol::yes || n.left == Symbol::no) return Rule::opposite_constant;
    return n.left == Symbol::opposite && n.inner_left && n.inner_left != Symbol::opposite ? Rule::double_opposite
                                                                                          : Rule::none;
  }
  if (n.s < Symbol::zero) {
    const Rule rule = match_arithmetic(n);
    const bool negated = rule == Rule::add_negated || rule == Rule::subtract_negated;
    return negated && !n.inner_right ? Rule::none : rule;
  }
  return match_logic(n);
}

std::vector<NodeEdit> plan_pass(const Expression& e) { return Planner(e, Reach::everywhere).run(); }

std::vector<std::uint32_t> pass_places(const Expression& e) {
  Planner planner(e, Reach::everywhere);
  planner.run();
  return planner.places();
}

std::vector<NodeEdit> plan_rule(const Expression& e, std::uint32_t node) {
  return Planner(e, Reach::one_rule).run_at(node);
}

bool keeps_everything(std::span<const NodeEdit> edits) {
  return std::all_of(edits.begin(), edits.end(),
                     [](const NodeEdit& d) { return d.kind == EditKind::keep && !d.insert; });
}

Expression apply_edits(const Expression& e, std::span<const NodeEdit> edits) {
  check_edits(e, edits);
  return std::move(Builder(e, edits).result);
}

std::vector<std::uint32_t> trace_edits(const Expression& e, std::span<const NodeEdit> edits) {
  check_edits(e, edits);
  return Builder(e, edits).image();
}

std::vector<Expression> passes(const Expression& e) {
  std::vector<Expression> all{e};
  for (;;) {
    const std::vector<NodeEdit> edits = plan_pass(all.back());
    if (keeps_everything(edits)) return all;
    all.push_back(apply_edits(all.back(), edits));
  }
}

}  // namespace gradloom
