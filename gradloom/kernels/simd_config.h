// Include before <hwy/foreach_target.h>: which instruction sets the kernels are compiled for.
#pragma once

// Without AVX-512: sums over lanes are defined on 8 lanes, so 512-bit registers would gain little, and nothing here
// could test them.
#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL)
#define HWY_COMPILE_ALL_ATTAINABLE
