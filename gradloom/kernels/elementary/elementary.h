// exp, log, sigmoid and silu of our own: the same bits in scalar code, on every instruction set and on a GPU.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

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
  static V select(bool mask, V a, V b) { return mask ? a : b; }
  static V shift_to_exponent(V v) {
    return std::bit_cast<T>(static_cast<Bits>((std::bit_cast<Bits>(v) << Limits::kMantissaBits) + Limits::kOneBits));
  }
};

#define GRADLOOM_ELEMENTARY_ATTR inline
#include "gradloom/kernels/elementary/elementary.inc"
#undef GRADLOOM_ELEMENTARY_ATTR

inline float exp(float x) { return elementary_exp(ScalarOps<float>{}, x); }
inline double exp(double x) { return elementary_exp(ScalarOps<double>{}, x); }
inline float sigmoid(float x) { return elementary_sigmoid(ScalarOps<float>{}, x); }
inline double sigmoid(double x) { return elementary_sigmoid(ScalarOps<double>{}, x); }

template <class T>
struct ValueAndSlope {
  T value, slope;
};

inline ValueAndSlope<float> silu(float x) {
  ValueAndSlope<float> r;
  elementary_silu(ScalarOps<float>{}, x, &r.value, &r.slope);
  return r;
}
inline ValueAndSlope<double> silu(double x) {
  ValueAndSlope<double> r;
  elementary_silu(ScalarOps<double>{}, x, &r.value, &r.slope);
  return r;
}

// Natural logarithm of a positive normal number, within 2 units in the last place; -infinity for 0, NaN below.
template <class T>
T log(T x) {
  using L = ElementaryLimits<T>;
  using Bits = typename L::Bits;
  using SignedBits = std::make_signed_t<Bits>;
  if (!(x > 0)) return x == 0 ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::quiet_NaN();
  if (x == std::numeric_limits<T>::infinity()) return x;
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)).
  const Bits bits = std::bit_cast<Bits>(x);
  const auto e = static_cast<SignedBits>(bits - L::kSqrtHalfBits) >> L::kMantissaBits;
  const T m = std::bit_cast<T>(static_cast<Bits>(bits - (static_cast<Bits>(e) << L::kMantissaBits)));
  // log m = 2 artanh f = 2 (f + f^3/3 + f^5/5 + ...), |f| <= 0.172.
  const T f = (m - 1) / (m + 1), f2 = f * f;
  T series = 0;
  for (int k = L::kLogTerms; k >= 1; --k) series = series * f2 + static_cast<T>(1.0 / (2 * k + 1));
  const T n = static_cast<T>(e);
  return n * static_cast<T>(L::kLn2High) + (f + f + (f + f) * f2 * series + n * static_cast<T>(L::kLn2Low));
}

// log(1 + x) for x >= 0, accurate for small x.
template <class T>
T log1p(T x) {
  const T u = 1 + x;
  return log(u) + (x - (u - 1)) / u;
}

}  // namespace gradloom::kernels
