#include "gradloom/kernels/full_vectors.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace gradloom::kernels {
namespace {

bool ask_processor() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx512vbmi2")) return false;
  if (__builtin_cpu_is("intel")) return true;
  if (!__builtin_cpu_is("amd")) return false;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
  const unsigned family = (a >> 8 & 15) + (a >> 20 & 255);
  return family >= 0x1a;  // Zen 5
#else
  return false;
#endif
}

constexpr int kAsk = -1;
int forced = kAsk;

}  // namespace

bool full_vectors() {
  static const bool full = ask_processor();
  return forced == kAsk ? full : forced == 1;
}

ForceFullVectors::ForceFullVectors(bool full) : previous_(forced) { forced = full ? 1 : 0; }
ForceFullVectors::~ForceFullVectors() { forced = previous_; }

}  // namespace gradloom::kernels
