// For tests: a b + c rounded once, without fma(), by errors of sums and products that are numbers themselves (Boldo and
// Melquiond, "Emulation of FMA and correctly rounded sums", 2008). Right as long as no error is too small for a number.
#ifndef GRADLOOM_SLOPPY_FMA_GLSL
#define GRADLOOM_SLOPPY_FMA_GLSL

// x + y = sum + error
void sloppy_sum(float x, float y, out float sum, out float error) {
  precise float s = x + y;
  precise float moved = s - x, kept = s - moved;
  precise float first_error = x - kept, second_error = y - moved, all = first_error + second_error;
  sum = s;
  error = all;
}

void sloppy_halves(float x, out float high, out float low) {
  precise float scaled = x * float(4097);
  precise float beyond = scaled - x, h = scaled - beyond, l = x - h;
  high = h;
  low = l;
}

float sloppy_fma(float a, float b, float c) {
  float a_high, a_low, b_high, b_low, c_sum, c_error, sum, error, rest, lost;
  sloppy_halves(a, a_high, a_low);
  sloppy_halves(b, b_high, b_low);
  precise float product = a * b;
  precise float below = a_high * b_high - product;
  below = below + a_high * b_low;
  below = below + a_low * b_high;
  below = below + a_low * b_low;
  sloppy_sum(c, below, c_sum, c_error);
  sloppy_sum(product, c_sum, sum, error);
  sloppy_sum(c_error, error, rest, lost);
  // Rounded to odd: rounding it again cannot hit a tie that is none.
  const uint bits = floatBitsToUint(rest);
  if (lost != float(0) && (bits & 1u) == 0u)
    rest = uintBitsToFloat((lost > float(0)) == (rest > float(0)) ? bits + 1u : bits - 1u);
  precise float result = sum + rest;
  precise float plain = product + c;
  return (floatBitsToUint(result) & 0x7f800000u) == 0x7f800000u ? plain : result;
}
vec4 sloppy_fma(vec4 a, vec4 b, vec4 c) {
  return vec4(sloppy_fma(a.x, b.x, c.x), sloppy_fma(a.y, b.y, c.y), sloppy_fma(a.z, b.z, c.z),
              sloppy_fma(a.w, b.w, c.w));
}
#define GRADLOOM_FMA sloppy_fma

#endif
