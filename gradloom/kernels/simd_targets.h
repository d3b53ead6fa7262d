// Which instruction sets this program and processor share, and a way to force one: all of one arithmetic must give the
// same bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/exec/arithmetic.h"

namespace gradloom::kernels {

// The instruction sets that kernels may use, as bits of Highway. The processor is asked once: in a virtual machine that
// takes longer than many a kernel.
std::int64_t allowed_targets();

// Names such as "AVX3_DL" (AVX-512 since Ice Lake and Zen 4), "AVX2", "SSE4", "SCALAR", the best first. Never empty. A
// kernel uses the best one that it is compiled for; not all are for AVX3_DL.
std::vector<std::string> simd_targets();

// Those whose code has this arithmetic; none where the processor does not have it.
std::vector<std::string> simd_targets(Arithmetic arithmetic);

// No kernel uses a better instruction set than this one until the scope ends; then the best one again (or the one of
// the scope around it). A kernel that is asked for an arithmetic of which no instruction set is left runs its
// definition. Affects the whole process: for tests and `gradloom check`, not while other threads run kernels.
// Throws Exception(invalid_input) for a name that is not among simd_targets().
class ForceSimdTarget {
 public:
  explicit ForceSimdTarget(std::string_view name);
  ~ForceSimdTarget();
  ForceSimdTarget(const ForceSimdTarget&) = delete;
  ForceSimdTarget& operator=(const ForceSimdTarget&) = delete;

 private:
  std::int64_t previous_;
};

}  // namespace gradloom::kernels
