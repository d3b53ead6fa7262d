// fma() of the device, for numbers that it cannot know beforehand: probe.cpp.
#version 450

#ifdef GRADLOOM_DOUBLE
#define real double
#else
#define real float
#endif

layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Factors { real factors[]; };  // a, b, c of each case
layout(std430, binding = 1) writeonly buffer Results { real results[]; };

void main() {
  const uint n = gl_LocalInvocationID.x;
  precise real result = fma(factors[3 * n], factors[3 * n + 1], factors[3 * n + 2]);
  results[n] = result;
}
