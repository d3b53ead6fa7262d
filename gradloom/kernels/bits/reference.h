// The definition of bit programs, one word at a time. See bits.h.
#pragma once

#include "gradloom/kernels/bits/bits.h"

namespace gradloom::kernels::bits::reference {

inline std::uint64_t apply_bits(BitOp op, std::uint64_t a, std::uint64_t b) {
  switch (op) {
    case BitOp::a_and_b:
      return a & b;
    case BitOp::a_and_not_b:
      return a & ~b;
    case BitOp::not_a_and_b:
      return ~a & b;
    case BitOp::a_xor_b:
      return a ^ b;
    case BitOp::a_or_b:
      return a | b;
    case BitOp::nor:
      return ~(a | b);
    case BitOp::xnor:
      return ~(a ^ b);
    case BitOp::a_or_not_b:
      return a | ~b;
    case BitOp::not_a_or_b:
      return ~a | b;
    case BitOp::nand:
      return ~(a & b);
    case BitOp::not_a:
      return ~a;
    case BitOp::zero:
    case BitOp::pair:
      return 0;
    case BitOp::one:
      return ~std::uint64_t{0};
  }
  return 0;
}

inline void run_bits(std::span<const BitInstruction> program, std::uint64_t* base, std::size_t words) {
  for (const BitInstruction& i : program)
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint64_t a = base[i.a + w], b = base[i.b + w];
      base[i.to + w] =
          i.op == BitOp::pair ? apply_bits(i.outer, apply_bits(i.inner, a, b), base[i.c + w]) : apply_bits(i.op, a, b);
    }
}

inline void shift_bits(const std::uint64_t* centre, std::uint64_t* west, std::uint64_t* east, std::size_t words) {
  for (std::size_t w = 0; w < words; ++w) {
    west[w] = centre[w] << 1 | centre[static_cast<std::ptrdiff_t>(w) - 1] >> 63;
    east[w] = centre[w] >> 1 | centre[w + 1] << 63;
  }
}

inline bool store_bits(const std::uint64_t* from, const std::uint64_t* old, std::uint64_t* to, std::size_t words) {
  std::uint64_t changed = 0;
  for (std::size_t w = 0; w < words; ++w) {
    changed |= from[w] ^ old[w];
    to[w] = from[w];
  }
  return changed != 0;
}

}  // namespace gradloom::kernels::bits::reference
