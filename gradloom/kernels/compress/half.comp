// Two values in a word, 16 bits each: gradloom/kernels/compress/compress.h. One invocation owns a word.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/shader/real.glsl"

layout(push_constant) uniform What { uint count; } what;

layout(std430, binding = 0) readonly buffer Gradient { real gradient[]; };
layout(std430, binding = 1) writeonly buffer Packed { uint packed[]; };

uint half_bits(uint n) {
  if (n >= what.count) return 0;
  const uint bits = floatBitsToUint(float(gradient[n]));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

void main() {
  const uint word = group_number() * kGroup + gl_LocalInvocationID.x;
  if (2 * word < what.count) packed[word] = half_bits(2 * word) | half_bits(2 * word + 1) << 16;
}
