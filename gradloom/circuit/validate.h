// Whether a circuit is well-formed, and how large it is.
#pragma once

#include <cstddef>

#include "gradloom/base/result.h"
#include "gradloom/circuit/circuit.h"

namespace gradloom::circuit {

// More than any model here has; keeps the sizes of everything that is derived from a circuit in check.
inline constexpr std::size_t kMaxInputs = 1u << 20, kMaxGates = 1u << 24, kMaxOutputs = 1u << 20;

// Fails with invalid_input and names the first gate or output that is wrong: an operand that does not come before its
// gate, an op that does not exist, an output that is no signal, too many of anything.
Result<void> validate(const Circuit& circuit);

// As above, and 9 C inputs, C outputs, C >= 1.
Result<void> validate(const CellRule& rule);

// Whether the function depends on its operand.
constexpr bool reads_a(Op op) {
  return apply(op, false, false) != apply(op, true, false) || apply(op, false, true) != apply(op, true, true);
}
constexpr bool reads_b(Op op) {
  return apply(op, false, false) != apply(op, false, true) || apply(op, true, false) != apply(op, true, true);
}

struct CircuitSize {
  std::size_t gates = 0;
  std::size_t active = 0;       // gates that are neither A nor B
  std::size_t depth = 0;        // gates on the longest path to an output; constants, A and B count nothing
  std::size_t used_inputs = 0;  // inputs that an output depends on, by structure
  friend bool operator==(const CircuitSize&, const CircuitSize&) = default;
};

// Precondition: validate(circuit) succeeds.
CircuitSize size_of(const Circuit& circuit);

}  // namespace gradloom::circuit
