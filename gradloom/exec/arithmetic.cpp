#include "gradloom/exec/arithmetic.h"

#include "gradloom/exec/without_fma.h"

namespace gradloom {
namespace {

thread_local unsigned without_fma = 0;  // scopes

}  // namespace

WithoutFma::WithoutFma() { ++without_fma; }
WithoutFma::~WithoutFma() { --without_fma; }

bool available(Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::split) return true;
  if (without_fma > 0) return false;
#if defined(__x86_64__)
  // What kernels/each_arithmetic.inc compiles the fused definitions for.
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

std::vector<Arithmetic> available_arithmetics() {
  std::vector<Arithmetic> found;
  for (const Arithmetic each : {Arithmetic::fused, Arithmetic::split})
    if (available(each)) found.push_back(each);
  return found;
}

}  // namespace gradloom
