// The scale of norm clipping from the sums of chunks: neighbours are added until one sum is left of each range, then the
// ranges in order. One group. `sums` holds the chunks of all ranges and as much room again.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/shader/step.glsl"

layout(push_constant) uniform What {
  uint ranges;
  uint room;  // where the second half of `sums` begins
} what;

layout(std430, binding = 0) coherent buffer Sums { real sums[]; };
layout(std430, binding = 1) readonly buffer Ranges { uvec4 ranges[]; };  // first sum, how many, and what squares.comp needs
layout(std430, binding = 2) readonly buffer Batch { real batch[]; };
layout(std430, binding = 3) writeonly buffer Scale { real scale[]; };

void main() {
  const uint me = gl_LocalInvocationID.x;
  precise real squares = real(0);
  for (uint r = 0; r < what.ranges; ++r) {
    uint from = ranges[r].x, to = from + what.room, count = ranges[r].y;
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
}
