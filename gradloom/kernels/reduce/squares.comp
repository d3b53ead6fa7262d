// The sums of squares of chunks of 4096 elements of several ranges: gradloom/kernels/reduce/reduce.h. Sixteen invocations
// own a chunk, one lane each; a group has four chunks.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/shader/real.glsl"

layout(push_constant) uniform What {
  uint first_range;
  uint first_sum;
  uint sums;  // of all these ranges
} what;

layout(std430, binding = 0) readonly buffer Values { real values[]; };
layout(std430, binding = 1) readonly buffer Ranges { uvec4 ranges[]; };  // first sum, sums, first element, elements
layout(std430, binding = 2) writeonly buffer Sums { real sums[]; };

const uint kChunk = 4096, kLanes = 16;
shared real lanes[64];

void main() {
  const uint me = gl_LocalInvocationID.x, lane = me % kLanes;
  const uint at = group_number() * (kGroup / kLanes) + me / kLanes, result = what.first_sum + at;
  const bool works = at < what.sums;
  precise real sum = real(0);
  if (works) {
    uint r = what.first_range;
    while (result >= ranges[r].x + ranges[r].y) ++r;
    const uint begin = (result - ranges[r].x) * kChunk, end = min(begin + kChunk, ranges[r].w), first = ranges[r].z;
    for (uint n = begin + lane; n < end; n += kLanes) {
      precise real square = values[first + n] * values[first + n];
      sum = sum + square;
    }
  }
  lanes[me] = sum;
  for (uint half_count = kLanes / 2; half_count > 0; half_count /= 2) {
    barrier();
    if (lane < half_count) {
      precise real both = lanes[me] + lanes[me + half_count];
      lanes[me] = both;
    }
  }
  if (lane == 0 && works) sums[result] = lanes[me];
}
