// Makes circuits smaller without searching: what follows from the structure alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gradloom/circuit/circuit.h"

namespace gradloom::circuit {

// The same function of the same inputs: constants and pass-throughs folded, equal gates shared (operands in either
// order, inverters absorbed into the ops), dead gates removed. Throws Exception(invalid_input) where validate() fails.
Circuit simplify(const Circuit& circuit);

// A rule without the channels that the observed ones do not depend on.
struct SlicedRule {
  CellRule rule;
  std::vector<std::int64_t> channel_of;  // old channel -> channel of `rule`, or -1 where it was removed
};

// Keeps the observed channels and all channels on which one of them depends at some later step; simplifies. On the
// channels kept, every step of the result equals a step of `rule`. `observed` is not empty. Throws
// Exception(invalid_input) for a bad rule or channel.
SlicedRule slice(const CellRule& rule, std::span<const std::uint32_t> observed);

}  // namespace gradloom::circuit
