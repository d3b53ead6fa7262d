// FlushSubnormals: subnormal numbers count as zero, in operands and results, until the scope ends.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace gradloom {

// Every kernel and every reference runs under this mode, so that they agree in their bits (ARCHITECTURE.md, rule 5).
// The caller's mode is restored. Costs one register read when the mode is already set.
class FlushSubnormals {
 public:
#if defined(__x86_64__)
  FlushSubnormals() : saved_(_mm_getcsr()) {
    if ((saved_ & kFlush) != kFlush) _mm_setcsr(saved_ | kFlush);
  }
  ~FlushSubnormals() {
    if ((saved_ & kFlush) != kFlush) _mm_setcsr(saved_);
  }
#elif defined(__aarch64__)
  FlushSubnormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" ::"r"(saved_ | kFlush));
  }
  ~FlushSubnormals() { asm volatile("msr fpcr, %0" ::"r"(saved_)); }
#endif
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned kFlush = 0x8040;  // flush-to-zero and denormals-are-zero
  unsigned saved_;
#elif defined(__aarch64__)
  static constexpr unsigned long kFlush = 1ul << 24;
  unsigned long saved_;
#endif
};

}  // namespace gradloom
