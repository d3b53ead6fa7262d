// Helpers of the SIMD kernels, compiled once per instruction set.
#if defined(GRADLOOM_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADLOOM_KERNELS_SIMD_INL_H_
#undef GRADLOOM_KERNELS_SIMD_INL_H_
#else
#define GRADLOOM_KERNELS_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <type_traits>
#include <utility>

#include "gradloom/kernels/mul_add.h"

// A lambda that becomes part of the function around it. g++ turns arrays of registers that are indexed in plain loops
// into stores to the stack; indices that are constants from the start avoid that.
#undef GRADLOOM_UNROLLED
#define GRADLOOM_UNROLLED HWY_ATTR __attribute__((always_inline))

// The arithmetic of this instruction set (contract.h), as the name of the namespace of its scalar definitions.
#undef GRADLOOM_TARGET_ARITHMETIC
#if HWY_NATIVE_FMA
#define GRADLOOM_TARGET_ARITHMETIC fused
#else
#define GRADLOOM_TARGET_ARITHMETIC split
#endif

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr bool kFused = Arithmetic::GRADLOOM_TARGET_ARITHMETIC == Arithmetic::fused;
static_assert(kFused == ((HWY_TARGET & GRADLOOM_FUSED_TARGETS) != 0));

using kernels::GRADLOOM_TARGET_ARITHMETIC::mul_add;
using kernels::GRADLOOM_TARGET_ARITHMETIC::neg_mul_add;

// a b + c
template <class V>
requires(!std::is_arithmetic_v<V>) HWY_INLINE V mul_add(V a, V b, V c) {
  if constexpr (kFused)
    return hn::MulAdd(a, b, c);
  else
    return hn::Add(c, hn::Mul(a, b));
}

// c - a b
template <class V>
requires(!std::is_arithmetic_v<V>) HWY_INLINE V neg_mul_add(V a, V b, V c) {
  if constexpr (kFused)
    return hn::NegMulAdd(a, b, c);
  else
    return hn::Sub(c, hn::Mul(a, b));
}

// At most 8 numbers: the lanes over which sums are defined.
template <class T>
using Tag = hn::CappedTag<T, 8>;

// At most 16 numbers, for work that adds up no lanes. With AVX-512 twice as many floats as Tag, elsewhere the same.
template <class T>
using WideTag = hn::CappedTag<T, 16>;

// Pins an instruction to its place in the source. g++ otherwise delays all additions to one sum until it is read, which
// makes chains of dependent additions out of interleaved ones (0.66 instead of 0.8 of the peak in one kernel).
template <class V>
HWY_INLINE void pin([[maybe_unused]] V& v) {
#if HWY_TARGET <= HWY_AVX3 && HWY_COMPILER_GCC_ACTUAL
  asm volatile("" : "+v"(v.raw));  // any of 32 registers
#elif HWY_TARGET == HWY_AVX2 && HWY_COMPILER_GCC_ACTUAL
  asm volatile("" : "+x"(v.raw));
#endif
}

template <std::size_t n>
using Index = std::integral_constant<std::size_t, n>;

// f(Index<0>), f(Index<1>), ... f(Index<count - 1>), without a loop.
template <class F, std::size_t... i>
HWY_INLINE void unroll(F&& f, std::index_sequence<i...>) {
  (f(Index<i>{}), ...);
}
template <std::size_t count, class F>
HWY_INLINE void unroll(F&& f) {
  unroll(f, std::make_index_sequence<count>{});
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
