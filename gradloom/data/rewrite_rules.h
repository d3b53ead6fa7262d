// Simplifying expressions: the rules, one parallel pass of them, and passes written as edits of nodes.
#pragma once

#include <span>
#include <vector>

#include "gradloom/data/expression.h"

namespace gradloom {

// In the order in which they are tried. u and v stand for any expression, x for a variable, c for constants.
enum class Rule : std::uint8_t {
  add_zero,           // u+0 -> u, 0+u -> u
  subtract_zero,      // u-0 -> u
  zero_minus,         // 0-u -> (-u)
  times_zero,         // u*0 -> 0, 0*u -> 0
  times_one,          // u*1 -> u, 1*u -> u
  over_one,           // u/1 -> u
  to_the_zero,        // u^0 -> 1
  to_the_one,         // u^1 -> u
  one_to_the,         // 1^u -> 1
  fold,               // c+c, c-c, c*c, c/c, c^c -> c where the result is one of 0 .. 4
  double_negation,    // -(-u) -> u, unless u is a negation itself
  negate_zero,        // -0 -> 0
  add_negated,        // u+(-v) -> u-v
  subtract_negated,   // u-(-v) -> u+v
  minus_itself,       // x-x -> 0
  twice,              // x+x -> 2*x
  square,             // x*x -> x^2
  both_yes,           // u&T -> u, T&u -> u
  both_no,            // u&F -> F, F&u -> F
  either_no,          // u|F -> u, F|u -> u
  either_yes,         // u|T -> T, T|u -> T
  opposite_constant,  // !T -> F, !F -> T
  double_opposite,    // !!u -> u, unless u is an opposite itself
  both_same,          // x&x -> x
  either_same,        // x|x -> x
  implication,        // u>v -> (!u)|v
  none,
};
inline constexpr std::size_t kRules = static_cast<std::size_t>(Rule::none);
std::string_view rule_name(Rule rule);

// What happens to one node.
enum class EditKind : std::uint8_t { keep, erase, relabel };
struct NodeEdit {
  EditKind kind = EditKind::keep;
  Symbol symbol = Symbol::zero;  // relabel: the new one
  bool insert = false;           // a new unary node above this one
  Symbol inserted = Symbol::opposite;
  bool operator==(const NodeEdit&) const = default;
};

// The first rule whose left side matches at this node.
Rule match(const Expression& e, std::uint32_t node);

// One pass: every rule that matches, from the root downwards; what a rule erases or consumes is not looked at again.
// One edit for each node.
std::vector<NodeEdit> plan_pass(const Expression& e);
bool keeps_everything(std::span<const NodeEdit> edits);

// The nodes at which that pass applies a rule, and what the rule at one of them does alone.
std::vector<std::uint32_t> pass_places(const Expression& e);
std::vector<NodeEdit> plan_rule(const Expression& e, std::uint32_t node);

// The expression that edits make. An erased node is replaced by its first child that is not erased, else by what is
// left of the first child of which something is left; other children vanish with it. A node has the first `arity` of
// the children that are left. Then the inserted node, if any, comes above whatever stands in the node's place. Defined
// for any edits: the result may lack children, or everything. Edits that are not one for each node throw.
Expression apply_edits(const Expression& e, std::span<const NodeEdit> edits);

// Which node of the result each node of the source becomes (kNoNode: none), for edits of plan_pass().
std::vector<std::uint32_t> trace_edits(const Expression& e, std::span<const NodeEdit> edits);

// Passes until nothing matches: the expression itself, then after each pass.
std::vector<Expression> passes(const Expression& e);
inline Expression normal_form(const Expression& e) { return passes(e).back(); }

}  // namespace gradloom
