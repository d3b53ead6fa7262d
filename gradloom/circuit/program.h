// A circuit as a straight program of bit operations with few temporary rows.
#pragma once

#include <cstdint>
#include <vector>

#include "gradloom/circuit/circuit.h"
#include "gradloom/kernels/bits/bits.h"

namespace gradloom::circuit {

// Instructions name rows by number: first the circuit's inputs, which are never written, then the temporaries.
struct BitProgram {
  std::uint32_t inputs = 0;
  std::uint32_t temporaries = 0;
  std::vector<kernels::bits::BitInstruction> instructions;
  std::vector<std::uint32_t> outputs;  // the row that holds each output at the end
  std::vector<bool> reads;             // which inputs the program or an output needs
};

// Simplifies first; gates with a single reader become part of it where the kernel has such an instruction, and rows are
// used again as soon as nobody needs what they hold. Precondition: validate(circuit) succeeds.
BitProgram compile(const Circuit& circuit);

// One gate on rows: `to` = op(a, b). A row that the op ignores is not read.
kernels::bits::BitInstruction instruction_of(Op op, std::uint32_t to, std::uint32_t a, std::uint32_t b);

// The same program with each row number r replaced by the word offset at[r].
std::vector<kernels::bits::BitInstruction> relocate(const BitProgram& program, const std::vector<std::uint32_t>& at);

}  // namespace gradloom::circuit
