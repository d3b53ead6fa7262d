// The numerical contract (docs/bits.md): a product that is added is fused into the sum, and sums over samples follow
// one tree (reduce/tree_sum.h).
//
// What is fused is written, and nothing else is: mul_add(a, b, c) = a b + c and neg_mul_add(a, b, c) = c - a b, of
// numbers (mul_add.h) and of vectors (simd-inl.h), in shaders (shader/real.glsl) and of Dual numbers. They stand
// wherever a product is added to a sum that grows, or inside a nested polynomial. Of a sum of two products the second
// is fused into the first, which is rounded: a b + c d = mul_add(c, d, a b). A difference of two products is not fused,
// and what is handed over to somebody who adds it up is rounded first.
//
// There are two arithmetics (exec/arithmetic.h): fused in code for AVX2 and later, split in code for older instruction
// sets. Scalar definitions exist once for each (each_arithmetic.inc).
#pragma once

#include "gradloom/exec/arithmetic.h"
