// Include before <hwy/foreach_target.h>: which instruction sets the kernels are compiled for.
#pragma once

// Without AVX-512: sums over lanes are defined on 8 lanes, so 512-bit registers would gain little, and nothing here
// could test them.
#ifdef GRADLOOM_FEW_SIMD_TARGETS
// Sanitized builds look for bad accesses, not for speed: the widest and the scalar version, or they compile for
// minutes.
#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3)
#else
// Processors with SSSE3 and no SSE4 are older than 2008; they run the scalar version.
#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL | HWY_SSSE3)
#endif
#define HWY_COMPILE_ALL_ATTAINABLE

namespace gradloom::kernels {

// The degree to compile a version of its own for; 0 stands for the version that loops over any degree. Sanitized builds
// keep one special version beside it, which has all the special code.
inline constexpr int specialised(int degree) {
#ifdef GRADLOOM_FEW_SIMD_TARGETS
  return degree == 3 ? 3 : 0;
#else
  return degree;
#endif
}

}  // namespace gradloom::kernels
