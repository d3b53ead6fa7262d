// How a product that is added to something is rounded, and which of the two ways this build and processor offer.
#pragma once

#include <vector>

// The numerical contract of the build: gradloom/kernels/contract.h.
#ifndef GRADLOOM_CONTRACT
#define GRADLOOM_CONTRACT 2
#endif

namespace gradloom {

enum class Arithmetic {
  fused,  // a b + c is rounded once
  split,  // the product is rounded, then the sum
};

// Whether code for this arithmetic can run here. Split always can; fused needs contract 2 and a processor with FMA.
bool available(Arithmetic arithmetic);

// Both, or split alone.
std::vector<Arithmetic> available_arithmetics();

// Fused where that is available.
inline Arithmetic default_arithmetic() {
#if GRADLOOM_CONTRACT == 1
  return Arithmetic::split;
#else
  static const Arithmetic best = available(Arithmetic::fused) ? Arithmetic::fused : Arithmetic::split;
  return best;
#endif
}

}  // namespace gradloom
