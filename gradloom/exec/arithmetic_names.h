// The arithmetics by name, and the number of the numerical contract, for files and options.
#pragma once

#include "gradloom/base/choice.h"
#include "gradloom/exec/arithmetic.h"

namespace gradloom {

inline constexpr Choice<Arithmetic> kArithmetics[] = {
    {Arithmetic::fused, "fused", "a product that is added is rounded once, with the sum"},
    {Arithmetic::split, "split", "the product is rounded, then the sum"},
};

// Checkpoints, logs and model files carry it as `arithmetic` (docs/bits.md). Files of contract 1 have no such number.
inline constexpr unsigned kNumericalContract = 2;

}  // namespace gradloom
