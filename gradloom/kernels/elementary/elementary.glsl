// exp, log, sigmoid and silu: the operations of gradloom/kernels/elementary/elementary.inc, in their order.
#ifndef GRADLOOM_ELEMENTARY_GLSL
#define GRADLOOM_ELEMENTARY_GLSL

#include "gradloom/kernels/shader/exact.glsl"
#include "gradloom/kernels/shader/real.glsl"

// The constants of elementary/limits.h, rounded to the scalar.
#ifdef GRADLOOM_DOUBLE
const real kInverseLn2 = 1.4426950408889634lf;
const real kRoundMagic = 6755399441055744.0lf;
const real kLn2High = 0.6931471803691238lf;
const real kLn2Low = 1.9082149292705877e-10lf;
const real kExpLow = -707.0lf;
const real kExpHigh = 709.782712893384lf;
const int kExpDegree = 13;
const real kInverseFactorials[14] = real[](
    1.0lf, 1.0lf, 0.5lf, 0.16666666666666666lf, 0.041666666666666664lf, 0.008333333333333333lf,
    0.001388888888888889lf, 0.0001984126984126984lf, 2.48015873015873e-05lf, 2.7557319223985893e-06lf,
    2.755731922398589e-07lf, 2.505210838544172e-08lf, 2.08767569878681e-09lf, 1.6059043836821613e-10lf);
const int kLogTerms = 12;
const real kInverseOdd[13] = real[](
    1.0lf, 0.3333333333333333lf, 0.2lf, 0.14285714285714285lf, 0.1111111111111111lf, 0.09090909090909091lf,
    0.07692307692307693lf, 0.06666666666666667lf, 0.058823529411764705lf, 0.05263157894736842lf,
    0.047619047619047616lf, 0.043478260869565216lf, 0.04lf);
const real kInverseDegree[8] = real[](
    0.0lf, 1.0lf, 0.5lf, 0.3333333333333333lf, 0.25lf, 0.2lf, 0.16666666666666666lf, 0.14285714285714285lf);
#else
const real kInverseLn2 = 1.44269502;
const real kRoundMagic = 12582912.0;
const real kLn2High = 0.693145752;
const real kLn2Low = 1.42860677e-06;
const real kExpLow = -86.0;
const real kExpHigh = 88.7228317;
const int kExpDegree = 7;
const real kInverseFactorials[8] = real[](
    1.0, 1.0, 0.5, 0.166666672, 0.0416666679, 0.00833333377, 0.00138888892, 0.000198412701);
const int kLogTerms = 5;
const real kInverseOdd[6] = real[](
    1.0, 0.333333343, 0.200000003, 0.142857149, 0.111111112, 0.0909090936);
const real kInverseDegree[8] = real[](
    0.0, 1.0, 0.5, 0.333333343, 0.25, 0.200000003, 0.166666672, 0.142857149);
#endif

#ifdef GRADLOOM_DOUBLE
real infinity() { return packDouble2x32(uvec2(0u, 0x7ff00000u)); }
// By bits: a compiler may take it for granted that no number is infinite.
bool is_infinity(real x) { return unpackDouble2x32(x) == uvec2(0u, 0x7ff00000u); }
real not_a_number() { return packDouble2x32(uvec2(0u, 0x7ff80000u)); }
// 2^n for the integer n in the low bits of v.
real shift_to_exponent(real v) {
  const uvec2 bits = unpackDouble2x32(v);
  return packDouble2x32(uvec2(0u, (bits.x << 20) + 0x3ff00000u));
}
// x = 2^n m, m in [sqrt(1/2), sqrt(2)).
void split(real x, out real m, out real n) {
  const uvec2 bits = unpackDouble2x32(x);
  // (bits - bits of sqrt(1/2)) >> 52, arithmetically.
  const uint borrow = bits.x < 0x667f3bcdu ? 1u : 0u;
  const int e = int(bits.y - 0x3fe6a09eu - borrow) >> 20;
  m = packDouble2x32(uvec2(bits.x, bits.y - (uint(e) << 20)));
  n = real(e);
}
#else
real infinity() { return uintBitsToFloat(0x7f800000u); }
bool is_infinity(real x) { return floatBitsToUint(x) == 0x7f800000u; }
real not_a_number() { return uintBitsToFloat(0x7fc00000u); }
real shift_to_exponent(real v) { return uintBitsToFloat((floatBitsToUint(v) << 23) + 0x3f800000u); }
void split(real x, out real m, out real n) {
  const uint bits = floatBitsToUint(x);
  const int e = int(bits - 0x3f3504f3u) >> 23;
  m = uintBitsToFloat(bits - (uint(e) << 23));
  n = real(e);
}
#endif

real elementary_exp(real x) {
  precise real shifted = mul_add(x, kInverseLn2, kRoundMagic);
  precise real n = shifted - kRoundMagic;
  precise real rest = neg_mul_add(n, kLn2High, x);
  precise real r = neg_mul_add(n, kLn2Low, rest);
  precise real p = kInverseFactorials[kExpDegree];
  for (int k = kExpDegree - 1; k >= 0; --k) p = mul_add(p, r, kInverseFactorials[k]);
  precise real exponent = shifted - real(1);
  precise real twice = p + p;
  precise real result = twice * shift_to_exponent(exponent);
  if (x < kExpLow) result = real(0);
  if (kExpHigh < x) result = infinity();
  return result;
}

real elementary_sigmoid(real x) {
  precise real negative = real(0) - x;
  precise real e = elementary_exp(negative);
  precise real below = real(1) + e;
  precise real result = exact_divide(real(1), below);
  return result;
}

void elementary_silu(real x, out real value, out real slope) {
  precise real s = elementary_sigmoid(x);
  precise real v = x * s;
  precise real other = real(1) - s;
  precise real sum = mul_add(x, other, real(1));
  precise real d = s * sum;
  value = v;
  slope = d;
}

real elementary_log(real x) {
  real m, n;
  split(x, m, n);
  precise real above = m - real(1);
  precise real below = m + real(1);
  precise real f = exact_divide(above, below);
  precise real f2 = f * f;
  precise real twice = f + f;
  precise real series = kInverseOdd[kLogTerms];
  for (int k = kLogTerms - 1; k >= 1; --k) series = mul_add(series, f2, kInverseOdd[k]);
  precise real cube = twice * f2;
  precise real tail = cube * series;
  precise real rest = mul_add(n, kLn2Low, tail);
  precise real fraction = twice + rest;
  precise real result = mul_add(n, kLn2High, fraction);
  if (!(real(0) < x) || is_nan(x)) result = not_a_number();
  if (is_infinity(x)) result = x;
  if (x == real(0)) result = -infinity();
  return result;
}

// log(1 + x) for x >= 0.
real elementary_log1p(real x) {
  precise real u = real(1) + x;
  precise real whole = u - real(1);
  precise real lost = x - whole;
  precise real correction = exact_divide(lost, u);
  precise real result = elementary_log(u) + correction;
  return result;
}

#endif
