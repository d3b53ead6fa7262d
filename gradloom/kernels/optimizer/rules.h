// The rules by which optimizers change parameters. A new one is a line in rule_list.inc and a function in rules.inc;
// constants that no other rule has are added to Step and make_step (optimizer.h) and to shader/step_scalars.inc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradloom::kernels::optimizer {

enum class Rule : std::uint32_t {
#define GRADLOOM_RULE(number, name, states, first, second) name = number,
#include "gradloom/kernels/optimizer/rule_list.inc"
#undef GRADLOOM_RULE
};

struct RuleFacts {
  Rule rule;
  std::string_view name;
  std::size_t states;
  std::array<std::string_view, 2> state_names;  // of which the first `states` count
};

inline constexpr RuleFacts kRules[] = {
#define GRADLOOM_RULE(number, name, states, first, second) {Rule::name, #name, states, {#first, #second}},
#include "gradloom/kernels/optimizer/rule_list.inc"
#undef GRADLOOM_RULE
};

constexpr const RuleFacts& facts(Rule rule) { return kRules[static_cast<std::size_t>(rule)]; }

}  // namespace gradloom::kernels::optimizer
