// exp, log, sigmoid and silu of our own: the same bits in scalar code, on every instruction set and on a GPU of one
// arithmetic. In the namespaces split and fused (contract.h).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "gradloom/kernels/elementary/limits.h"
#include "gradloom/kernels/mul_add.h"

namespace gradloom::kernels {

template <class T>
struct ValueAndSlope {
  T value, slope;
};

}  // namespace gradloom::kernels

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/elementary/scalar.inc"
#include "gradloom/kernels/each_arithmetic.inc"
