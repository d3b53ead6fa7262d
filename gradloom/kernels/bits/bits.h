// Programs of bitwise operations on rows of words: what a logic circuit becomes for many cells at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gradloom/exec/exec.h"

namespace gradloom::kernels::bits {

// The ten functions that depend on both operands, then those of one or none.
enum class BitOp : std::uint8_t {
  a_and_b,
  a_and_not_b,
  not_a_and_b,
  a_xor_b,
  a_or_b,
  nor,
  xnor,
  a_or_not_b,
  not_a_or_b,
  nand,
  not_a,
  zero,
  one,
  pair,  // outer(inner(a, b), c)
};

// Reads rows a, b (and c), writes row `to`; rows are word offsets from the program's base, multiples of 4. `to` may be
// one of the operands; otherwise rows do not overlap.
struct BitInstruction {
  BitOp op = BitOp::zero;
  BitOp inner = BitOp::a_and_b;  // of a pair: a_and_b, a_and_not_b, a_xor_b or a_or_b
  BitOp outer = BitOp::a_and_b;  // of a pair: one of the ten
  std::uint32_t to = 0, a = 0, b = 0, c = 0;
};

// Runs the instructions in order, each on `words` words (a multiple of 4). `base` is aligned to 32 bytes.
void run_bits(Variant variant, std::span<const BitInstruction> program, std::uint64_t* base, std::size_t words);

// Cells are bits, cell x is bit x % 64 of word x / 64. west[i] holds for each cell the one before it, east[i] the one
// after it; centre[-1] and centre[words] are read. `words` is a multiple of 4; rows do not overlap.
void shift_bits(Variant variant, const std::uint64_t* centre, std::uint64_t* west, std::uint64_t* east,
                std::size_t words);

// to = from; whether that differs from `old` in any bit. Any number of words, any alignment; rows do not overlap.
bool store_bits(Variant variant, const std::uint64_t* from, const std::uint64_t* old, std::uint64_t* to,
                std::size_t words);

}  // namespace gradloom::kernels::bits
