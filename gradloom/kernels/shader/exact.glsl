// Division and square root with the bits of IEEE 754: rounded to nearest, subnormal numbers flushed as on the CPU. What a
// device has of its own may be some ulp off (Vulkan allows 2.5), so shaders use nothing else. An approximate result is
// corrected by its remainder, which whole numbers give exactly: it is small, so its low bits are all of it. There are no
// ties: a quotient or root halfway between two neighbours would need a bit more than they have.
//
// NaN and infinity are found by their bits: a device that does not promise to keep them may take a comparison that finds
// them for one that is always false.
//
// The text is C++ too, for tests/kernels/exact_test.cpp.
#ifndef GRADLOOM_EXACT_GLSL
#define GRADLOOM_EXACT_GLSL

// The device's own, for positive normal numbers. They may be up to 6 ulp off.
#ifdef GRADLOOM_SLOPPY
#include "gradloom/kernels/shader/sloppy.glsl"
#else
float raw_reciprocal(float x) { return float(1) / x; }
float raw_inverse_root(float x) { return inversesqrt(x); }
#endif

#ifdef GRADLOOM_DOUBLE

bool is_finite(double x) { return (unpackDouble2x32(x).y & 0x7ff00000u) != 0x7ff00000u; }
bool is_nan(double x) {
  const uvec2 bits = unpackDouble2x32(x);
  return !is_finite(x) && ((bits.y & 0xfffffu) | bits.x) != 0u;
}

// Whole numbers of 64 bits, the low ones in x; what lies beyond is lost.
uvec2 wide_of(int a) { return uvec2(uint(a), a < 0 ? 0xffffffffu : 0u); }
uvec2 wide_sum(uvec2 a, uvec2 b) {
  const uint low = a.x + b.x;
  return uvec2(low, a.y + b.y + (low < a.x ? 1u : 0u));
}
uvec2 wide_difference(uvec2 a, uvec2 b) { return uvec2(a.x - b.x, a.y - b.y - (a.x < b.x ? 1u : 0u)); }
uvec2 wide_product(uvec2 a, uvec2 b) {
  uint high, low;
  umulExtended(a.x, b.x, high, low);
  return uvec2(low, high + a.x * b.y + a.y * b.x);
}
// Of a signed one; exact up to 2^53.
double wide_value(uvec2 a) {
  precise double high = double(int(a.y)) * double(4294967296.0);
  precise double all = high + double(a.x);
  return all;
}

double two_to_minus_52() { return packDouble2x32(uvec2(0u, 0x3cb00000u)); }
uint exponent_of(uvec2 bits) { return (bits.y >> 20) & 2047u; }
// The significand as a whole number of 53 bits, and as a number in [1, 2).
uvec2 significand_of(uvec2 bits) { return uvec2(bits.x, (bits.y & 0xfffffu) | 0x100000u); }
double fraction_of(uvec2 bits) { return packDouble2x32(uvec2(bits.x, (bits.y & 0xfffffu) | 0x3ff00000u)); }
// The 53 bits of an approximation in [1, 2) that may have left it.
uvec2 nearby(double x) {
  const uvec2 bits = unpackDouble2x32(x);
  if (bits.y < 0x3ff00000u) return uvec2(0u, 0x100000u);
  if (bits.y >= 0x40000000u) return uvec2(0xffffffffu, 0x1fffffu);
  return significand_of(bits);
}

double exact_divide(double a, double b) {
  const uvec2 ua = unpackDouble2x32(a), ub = unpackDouble2x32(b), ma = significand_of(ua), mb = significand_of(ub);
  const uint sign_bit = (ua.y ^ ub.y) & 0x80000000u, ea = exponent_of(ua), eb = exponent_of(ub);
  const bool less = ma.y < mb.y || (ma.y == mb.y && ma.x < mb.x);
  const double below = fraction_of(ub);
  precise double inverse = double(raw_reciprocal(float(below)));
  precise double error = double(1) - below * inverse;
  inverse = inverse + inverse * error;
  error = double(1) - below * inverse;
  inverse = inverse + inverse * error;
  precise double ratio = fraction_of(ua) * inverse;
  uvec2 q = nearby(less ? ratio + ratio : ratio);
  uvec2 r = wide_difference(uvec2(0u, ma.x << (less ? 21 : 20)), wide_product(q, mb));
  precise double steps = wide_value(r) * (inverse * two_to_minus_52()) + double(0.5);
  const uvec2 d = wide_of(int(floor(steps)));
  q = wide_sum(q, d);
  r = wide_difference(r, wide_product(d, mb));
  precise double rest = wide_value(r);
  precise double twice = rest + rest;
  const double whole = wide_value(mb);
  q = wide_sum(q, wide_of(twice > whole ? 1 : (twice < -whole ? -1 : 0)));
  const int e = int(ea) - int(eb) - (less ? 1 : 0) + 1023;
  uvec2 result = uvec2(q.x, (uint(e) << 20) + q.y - 0x100000u);
  if (e >= 2047) result = uvec2(0u, 0x7ff00000u);
  if (e <= 0) result = uvec2(0u, 0u);
  if (ea - 1u >= 2046u || eb - 1u >= 2046u) {  // zero (subnormal numbers count as zero), infinity, NaN
    if (is_nan(a) || is_nan(b) || (ea == 0u && eb == 0u) ||
        (ea == 2047u && eb == 2047u))
      return packDouble2x32(uvec2(0u, 0x7ff80000u));
    result = uvec2(0u, ea == 2047u || eb == 0u ? 0x7ff00000u : 0u);
  }
  return packDouble2x32(uvec2(result.x, result.y | sign_bit));
}

double exact_sqrt(double a) {
  const uvec2 u = unpackDouble2x32(a), m = significand_of(u);
  const uint e = exponent_of(u), odd = (e & 1u) ^ 1u;
  precise double x = fraction_of(u);
  if (odd != 0u) x = x + x;
  precise double inverse = double(raw_inverse_root(float(x)));
  precise double half_x = x * double(0.5);
  precise double error = double(0.5) - half_x * inverse * inverse;
  inverse = inverse + inverse * error;
  error = double(0.5) - half_x * inverse * inverse;
  inverse = inverse + inverse * error;
  precise double approximate = x * inverse;
  uvec2 root = nearby(approximate);
  const uvec2 square = uvec2(0u, m.x << (20u + odd));
  uvec2 r = wide_difference(square, wide_product(root, root));
  precise double steps = wide_value(r) * (inverse * two_to_minus_52()) * double(0.5) + double(0.5);
  root = wide_sum(root, wide_of(int(floor(steps))));
  r = wide_difference(square, wide_product(root, root));
  const double rest = wide_value(r), whole = wide_value(root);
  root = wide_sum(root, wide_of(rest > whole ? 1 : (rest <= -whole ? -1 : 0)));
  const uint exponent = uint((int(e) - 1023 - int(odd)) / 2 + 1023);
  if (e == 0u) return packDouble2x32(uvec2(0u, u.y & 0x80000000u));
  if (is_nan(a) || (u.y >> 31) != 0u) return packDouble2x32(uvec2(0u, 0x7ff80000u));
  return e == 2047u ? a : packDouble2x32(uvec2(root.x, (exponent << 20) + root.y - 0x100000u));
}

#else

bool is_finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }

float exact_divide(float a, float b) {
  const uint ua = floatBitsToUint(a), ub = floatBitsToUint(b), sign_bit = (ua ^ ub) & 0x80000000u;
  const uint ea = (ua >> 23) & 255u, eb = (ub >> 23) & 255u;
  const uint ma = (ua & 0x7fffffu) | 0x800000u, mb = (ub & 0x7fffffu) | 0x800000u;
  const uint less = ma < mb ? 1u : 0u, shift = 23u + less;
  const float inverse = raw_reciprocal(float(mb));
  precise float approximate = float(ma) * inverse * float(1u << shift);
  int q = int(approximate);  // 2^23 to 2^24
  int r = int((ma << shift) - uint(q) * mb);
  precise float steps = float(r) * inverse + float(0.5);
  const int d = int(floor(steps));
  q += d;
  r -= d * int(mb);
  q += 2 * r > int(mb) ? 1 : (2 * r < -int(mb) ? -1 : 0);
  const int e = int(ea) - int(eb) - int(less) + 127;
  uint result = (uint(e) << 23) + uint(q) - 0x800000u;
  if (e >= 255) result = 0x7f800000u;
  if (e <= 0) result = 0u;
  if (ea - 1u >= 254u || eb - 1u >= 254u) {  // zero (subnormal numbers count as zero), infinity, NaN
    if (is_nan(a) || is_nan(b) || (ea == 0u && eb == 0u) ||
        (ea == 255u && eb == 255u))
      return uintBitsToFloat(0x7fc00000u);
    result = ea == 255u || eb == 0u ? 0x7f800000u : 0u;
  }
  return uintBitsToFloat(sign_bit | result);
}

float exact_sqrt(float a) {
  const uint u = floatBitsToUint(a), e = (u >> 23) & 255u, odd = (e & 1u) ^ 1u;
  const uint m = (u & 0x7fffffu) | 0x800000u, square = m << (23u + odd);
  const float x = float(m << odd), inverse = raw_inverse_root(x);
  precise float approximate = x * inverse * float(2896.30938);  // sqrt(2^23 x), 2^23 to 2^24
  uint root = uint(int(approximate));
  precise float steps = float(int(square - root * root)) * inverse * float(0.000172633492) + float(0.5);  // 2^-12.5
  root += uint(int(floor(steps)));
  const int r = int(square - root * root);
  root += uint(r > int(root) ? 1 : (r <= -int(root) ? -1 : 0));
  const uint exponent = uint((int(e) - 127 - int(odd)) / 2 + 127);
  if (e == 0u) return uintBitsToFloat(u & 0x80000000u);
  if (is_nan(a) || (u >> 31) != 0u) return uintBitsToFloat(0x7fc00000u);
  return e == 255u ? a : uintBitsToFloat((exponent << 23) + root - 0x800000u);
}

#endif

#endif
