// Reads the text form in which published circuits of logic automata come: one device per line.
#pragma once

#include <cstdint>
#include <string_view>

#include "gradloom/base/result.h"
#include "gradloom/circuit/circuit.h"

namespace gradloom::circuit {

// Lines `INPUT i_N label`, `GATE name op in1 [in2]` and `OUTPUT o_N driver` in topological order; '#' starts a comment.
// Input i_N is input N, output o_N output N; ops are And, Or, Xor, Nor, Xnor, Nand, Not, AAndNotB, NotAAndB, AOrNotB,
// NotAOrB, A, B, False, True. Inputs that are not named exist and are not read. Fails with invalid_input and the line.
Result<CellRule> read_gate_list(std::string_view text, std::uint32_t channels, Boundary boundary);

}  // namespace gradloom::circuit
