// For tests: what exact.glsl corrects, computed without any division or root of the device, and up to GRADLOOM_SLOPPY ulp
// further off than its own rounding errors. Which way is a hash of the operand.
#ifndef GRADLOOM_SLOPPY_GLSL
#define GRADLOOM_SLOPPY_GLSL

float sloppy_neighbour(float x) {
  const uint bits = floatBitsToUint(x);
  const uint hash = (bits ^ (bits >> 15)) * 0x2c1b3c6du;
  return uintBitsToFloat(bits + (hash >> 16) % (2u * GRADLOOM_SLOPPY + 1u) - GRADLOOM_SLOPPY);
}

float raw_reciprocal(float x) {
  precise float y = uintBitsToFloat(0x7ef311c7u - floatBitsToUint(x));  // 12 percent off
  y = y * (float(2) - x * y);
  y = y * (float(2) - x * y);
  y = y * (float(2) - x * y);
  return sloppy_neighbour(y);
}

float raw_inverse_root(float x) {
  precise float y = uintBitsToFloat(0x5f3759dfu - (floatBitsToUint(x) >> 1));  // 4 percent off
  y = y * (float(1.5) - float(0.5) * x * y * y);
  y = y * (float(1.5) - float(0.5) * x * y * y);
  y = y * (float(1.5) - float(0.5) * x * y * y);
  return sloppy_neighbour(y);
}

#endif
