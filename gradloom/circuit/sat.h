// Equality of circuits by a SAT solver (CaDiCaL, in this process).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "gradloom/circuit/circuit.h"

namespace gradloom::circuit {

enum class SatAnswer { equal, different, unknown };

struct SatOutput {
  SatAnswer answer = SatAnswer::unknown;
  std::vector<bool> inputs{};  // different: an assignment that tells the two apart
};

// Compares output o of a with output o of b, for each o, over all inputs. An answer is unknown when the solver had more
// than `conflicts` of them, or once `stop` is set, which may be null; without it the same circuits get the same
// answers. Preconditions: validate() succeeds for both; they have the same numbers of inputs and outputs.
std::vector<SatOutput> compare_by_sat(const Circuit& a, const Circuit& b, std::uint32_t conflicts,
                                      const std::atomic<bool>* stop = nullptr);

}  // namespace gradloom::circuit
