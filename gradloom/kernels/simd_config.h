// Include before <hwy/foreach_target.h>: which instruction sets the kernels are compiled for.
#pragma once

// AVX-512 as processors have it since Ice Lake and Zen 4, for files that define GRADLOOM_AVX512: those that gain from
// it (docs/decisions/0003-spline-kernels.md) or tell about it. The others would only take longer to compile; they run
// AVX2.
#ifdef GRADLOOM_AVX512
#define HWY_WANT_AVX3_DL
#define GRADLOOM_WITHOUT_AVX512 HWY_AVX3
#else
#define GRADLOOM_WITHOUT_AVX512 (HWY_AVX3 | HWY_AVX3_DL)
#endif

#ifdef GRADLOOM_FEW_SIMD_TARGETS
// Sanitized builds look for bad accesses, not for speed: the widest versions and the scalar one, or they compile for
// minutes.
#define HWY_DISABLED_TARGETS (GRADLOOM_WITHOUT_AVX512 | HWY_SSE4 | HWY_SSSE3)
#else
// Processors with SSSE3 and no SSE4 are older than 2008; they run the scalar version.
#define HWY_DISABLED_TARGETS (GRADLOOM_WITHOUT_AVX512 | HWY_SSSE3)
#endif
#define HWY_COMPILE_ALL_ATTAINABLE

// Those with a fused multiply-add: AVX2 and better ones, which have lower bits.
#define GRADLOOM_FUSED_TARGETS ((HWY_AVX2 << 1) - 1)
