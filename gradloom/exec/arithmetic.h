// How a product that is added to something is rounded, and which of the two ways this processor offers.
#pragma once

#include <vector>

namespace gradloom {

enum class Arithmetic {
  fused,  // a b + c is rounded once
  split,  // the product is rounded, then the sum
};

// Whether code for this arithmetic can run here. Split always can; fused needs a processor with FMA.
bool available(Arithmetic arithmetic);

// Both, or split alone.
std::vector<Arithmetic> available_arithmetics();

// Fused where that is available.
inline Arithmetic default_arithmetic() {
  static const Arithmetic best = available(Arithmetic::fused) ? Arithmetic::fused : Arithmetic::split;
  return best;
}

}  // namespace gradloom
