// The scale of norm clipping. Squares of chunks of 4096 elements are summed as gradloom/kernels/reduce/reduce.h says:
// sixteen invocations own a chunk, one lane each; a group has four chunks. The group that is done last adds neighbours
// until one sum is left of each range, and then the ranges in order: who that is changes, what it adds does not.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/shader/step.glsl"

layout(push_constant) uniform What {
  uint first_range;
  uint first_sum;
  uint part_sums;   // of the ranges of this dispatch
  uint all_ranges;  // of all dispatches of a step
  uint all_sums;
  uint all_groups;
} what;

layout(std430, binding = 0) readonly buffer Values { real values[]; };
layout(std430, binding = 1) readonly buffer Ranges { uvec4 ranges[]; };  // first sum, sums, first element, elements
layout(std430, binding = 2) coherent buffer Sums { real sums[]; };       // all_sums, and as much room again
layout(std430, binding = 3) readonly buffer Batch { real batch[]; };
layout(std430, binding = 4) writeonly buffer Scale { real scale[]; };
layout(std430, binding = 5) coherent buffer Done { uint done; };  // groups of this step; 0 between steps

const uint kChunk = 4096, kLanes = 16, kChunksOfGroup = kGroup / kLanes;
shared real lanes[kGroup];
shared bool is_last;

void sum_chunk() {
  const uint me = gl_LocalInvocationID.x, lane = me % kLanes;
  const uint at = group_number() * kChunksOfGroup + me / kLanes, result = what.first_sum + at;
  const bool works = at < what.part_sums;
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

void add_ranges() {
  const uint me = gl_LocalInvocationID.x;
  precise real squares = real(0);
  for (uint r = 0; r < what.all_ranges; ++r) {
    uint from = ranges[r].x, to = from + what.all_sums, count = ranges[r].y;
    for (; count > 1; count = (count + 1) / 2) {
      for (uint n = me; n < (count + 1) / 2; n += kGroup) {
        precise real both = sums[from + 2 * n];
        if (2 * n + 1 < count) both = both + sums[from + 2 * n + 1];
        sums[to + n] = both;
      }
      memoryBarrierBuffer();
      barrier();
      const uint swap = from;
      from = to;
      to = swap;
    }
    squares = squares + sums[from];
  }
  if (me != 0) return;
  precise real norm = sqrt(squares);
  precise real limited = batch[kClipNorm] / norm;
  scale[0] = norm > batch[kClipNorm] ? limited : real(1);
  done = 0;
}

void main() {
  // A dispatch in two dimensions may have groups too many.
  if (group_number() * kChunksOfGroup >= what.part_sums) return;
  sum_chunk();
  memoryBarrierBuffer();
  barrier();
  if (gl_LocalInvocationID.x == 0) is_last = atomicAdd(done, 1) == what.all_groups - 1;
  barrier();
  memoryBarrierBuffer();
  if (is_last) add_ranges();
}
