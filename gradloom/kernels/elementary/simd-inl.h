// exp, log, sigmoid and silu on vectors, compiled once per instruction set: the same bits as elementary.h.
#if defined(GRADLOOM_KERNELS_ELEMENTARY_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADLOOM_KERNELS_ELEMENTARY_SIMD_INL_H_
#undef GRADLOOM_KERNELS_ELEMENTARY_SIMD_INL_H_
#else
#define GRADLOOM_KERNELS_ELEMENTARY_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include "gradloom/kernels/elementary/limits.h"
#include "gradloom/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// How elementary.inc handles a vector.
template <class D>
struct VectorOps {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  using M = hn::Mask<D>;
  using Limits = ElementaryLimits<T>;
  static constexpr D d{};
  static constexpr hn::RebindToUnsigned<D> du{};
  static constexpr hn::RebindToSigned<D> di{};
  static HWY_INLINE V set(double c) { return hn::Set(d, static_cast<T>(c)); }
  static HWY_INLINE V mul(V a, V b) { return hn::Mul(a, b); }
  static HWY_INLINE V add(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE V sub(V a, V b) { return hn::Sub(a, b); }
  static HWY_INLINE V div(V a, V b) { return hn::Div(a, b); }
  static HWY_INLINE V mul_add(V a, V b, V c) { return HWY_NAMESPACE::mul_add(a, b, c); }
  static HWY_INLINE V neg_mul_add(V a, V b, V c) { return HWY_NAMESPACE::neg_mul_add(a, b, c); }
  static HWY_INLINE M less(V a, V b) { return hn::Lt(a, b); }
  static HWY_INLINE M equal(V a, V b) { return hn::Eq(a, b); }
  static HWY_INLINE V select(M mask, V a, V b) { return hn::IfThenElse(mask, a, b); }
  static HWY_INLINE V shift_to_exponent(V v) {
    const auto shifted = hn::ShiftLeft<Limits::kMantissaBits>(hn::BitCast(du, v));
    return hn::BitCast(d, hn::Add(shifted, hn::Set(du, Limits::kOneBits)));
  }
  static HWY_INLINE void split(V x, V* mantissa, V* exponent) {
    using Signed = hn::TFromD<hn::RebindToSigned<D>>;
    const auto bits = hn::BitCast(di, x);
    const auto from = hn::Sub(bits, hn::Set(di, static_cast<Signed>(Limits::kSqrtHalfBits)));
    // The exponent field is compared without its sign: a shift of the unsigned bits and a bias instead of an arithmetic
    // one.
    constexpr Signed bias = Signed{1} << (sizeof(T) * 8 - 1 - Limits::kMantissaBits);
    const auto flipped = hn::Xor(hn::BitCast(du, from), hn::Set(du, typename Limits::Bits{1} << (sizeof(T) * 8 - 1)));
    const auto e = hn::Sub(hn::BitCast(di, hn::ShiftRight<Limits::kMantissaBits>(flipped)), hn::Set(di, bias));
    *mantissa = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<Limits::kMantissaBits>(e)));
    // A small integer becomes a number by way of the low mantissa bits.
    const auto magic = hn::BitCast(di, hn::Set(d, static_cast<T>(Limits::kRoundMagic)));
    *exponent = hn::Sub(hn::BitCast(d, hn::Add(magic, e)), hn::Set(d, static_cast<T>(Limits::kRoundMagic)));
  }
};

#define GRADLOOM_ELEMENTARY_ATTR HWY_INLINE
#include "gradloom/kernels/elementary/elementary.inc"
#undef GRADLOOM_ELEMENTARY_ATTR

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
