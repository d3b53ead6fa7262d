// The sums of squares of chunks of 4096 elements: gradloom/kernels/reduce/reduce.h. Sixteen invocations own a chunk, one
// lane each; a group has four chunks.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/shader/real.glsl"

layout(push_constant) uniform What {
  uint first;  // element
  uint count;
  uint result_at;
} what;

layout(std430, binding = 0) readonly buffer Values { real values[]; };
layout(std430, binding = 1) writeonly buffer Sums { real sums[]; };

const uint kChunk = 4096, kLanes = 16;
shared real lanes[64];

void main() {
  const uint me = gl_LocalInvocationID.x, lane = me % kLanes;
  const uint chunk = group_number() * (kGroup / kLanes) + me / kLanes, begin = chunk * kChunk;
  precise real sum = real(0);
  for (uint n = begin + lane; n < min(begin + kChunk, what.count); n += kLanes) {
    precise real square = values[what.first + n] * values[what.first + n];
    sum = sum + square;
  }
  lanes[me] = sum;
  for (uint half_count = kLanes / 2; half_count > 0; half_count /= 2) {
    barrier();
    if (lane < half_count) {
      precise real both = lanes[me] + lanes[me + half_count];
      lanes[me] = both;
    }
  }
  if (lane == 0 && begin < what.count) sums[what.result_at + chunk] = lanes[me];
}
