// Which numerical contract the kernels follow. 1: products and sums are rounded one by one, sums over samples run in
// order. 2: a product that is added is fused into the sum, sums over samples follow one tree (reduce/tree_sum.h). Code
// that differs between the two asks kContract; the build default is 1, -DGRADLOOM_CONTRACT=2 builds the other.
#pragma once

#ifndef GRADLOOM_CONTRACT
#define GRADLOOM_CONTRACT 1
#endif

namespace gradloom::kernels {

inline constexpr int kContract = GRADLOOM_CONTRACT;
static_assert(kContract == 1 || kContract == 2);

}  // namespace gradloom::kernels
