// exp, log, sigmoid and silu of our own: the same bits in scalar code, on every instruction set and on a GPU.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "gradloom/kernels/elementary/limits.h"

namespace gradloom::kernels {

// How elementary.inc handles a plain float or double.
template <class T>
struct ScalarOps {
  using V = T;
  using Limits = ElementaryLimits<T>;
  using Bits = typename Limits::Bits;
  static V set(double c) { return static_cast<T>(c); }
  static V mul(V a, V b) { return a * b; }
  static V add(V a, V b) { return a + b; }
  static V sub(V a, V b) { return a - b; }
  static V div(V a, V b) { return a / b; }
  static bool less(V a, V b) { return a < b; }
  static bool equal(V a, V b) { return a == b; }
  static V select(bool mask, V a, V b) { return mask ? a : b; }
  static V shift_to_exponent(V v) {
    return std::bit_cast<T>(static_cast<Bits>((std::bit_cast<Bits>(v) << Limits::kMantissaBits) + Limits::kOneBits));
  }
  static void split(V x, V* mantissa, V* exponent) {
    const Bits bits = std::bit_cast<Bits>(x);
    const auto e = static_cast<std::make_signed_t<Bits>>(bits - Limits::kSqrtHalfBits) >> Limits::kMantissaBits;
    *mantissa = std::bit_cast<T>(static_cast<Bits>(bits - (static_cast<Bits>(e) << Limits::kMantissaBits)));
    *exponent = static_cast<T>(e);
  }
};

namespace scalar {
#define GRADLOOM_ELEMENTARY_ATTR inline
#include "gradloom/kernels/elementary/elementary.inc"
#undef GRADLOOM_ELEMENTARY_ATTR
}  // namespace scalar

inline float exp(float x) { return scalar::elementary_exp(ScalarOps<float>{}, x); }
inline double exp(double x) { return scalar::elementary_exp(ScalarOps<double>{}, x); }
inline float sigmoid(float x) { return scalar::elementary_sigmoid(ScalarOps<float>{}, x); }
inline double sigmoid(double x) { return scalar::elementary_sigmoid(ScalarOps<double>{}, x); }

template <class T>
struct ValueAndSlope {
  T value, slope;
};

inline ValueAndSlope<float> silu(float x) {
  ValueAndSlope<float> r;
  scalar::elementary_silu(ScalarOps<float>{}, x, &r.value, &r.slope);
  return r;
}
inline ValueAndSlope<double> silu(double x) {
  ValueAndSlope<double> r;
  scalar::elementary_silu(ScalarOps<double>{}, x, &r.value, &r.slope);
  return r;
}

inline float log(float x) { return scalar::elementary_log(ScalarOps<float>{}, x); }
inline double log(double x) { return scalar::elementary_log(ScalarOps<double>{}, x); }

// log(1 + x) for x >= 0, accurate for small x.
template <class T>
T log1p(T x) {
  const T u = 1 + x;
  return log(u) + (x - (u - 1)) / u;
}

}  // namespace gradloom::kernels
