// Adds leaves to a sum in the order of gradloom/kernels/reduce/tree_sum.h. Each invocation owns kQuads times four
// elements: it takes the leaves in order, adds what the stack holds of the aligned ranges that a leaf completes, and puts
// the result there. With kNorm each group leaves the squares of its elements of the finished sum.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

#include "gradloom/kernels/shader/real.glsl"
#include "gradloom/kernels/shader/exact.glsl"

layout(constant_id = 0) const uint kQuads = 1;
layout(constant_id = 1) const bool kNorm = false;
const uint kShare = 1, kSubgroup = 1;
#include "gradloom/kernels/shader/subgroup.glsl"

layout(push_constant) uniform What {
#include "gradloom/kernels/reduce/push.inc"
} what;

layout(std430, binding = 0) readonly buffer Leaves { real4 leaves[]; };
layout(std430, binding = 1) buffer Root { real4 root[]; };
layout(std430, binding = 2) buffer Upper { real4 upper[]; };
layout(std430, binding = 3) readonly buffer Head { uint numbers[]; };  // shader/step.h
#define GRADLOOM_NORM_BINDING 4
#include "gradloom/kernels/reduce/norm.glsl"

real4 level(uint n, uint quad) { return n == 0 ? root[quad] : upper[(n - 1) * what.level_stride + quad]; }

void add_leaves(uint quad) {
  const uint before = numbers[1] + what.first_leaf;
  uint height = bitCount(before);
  precise real4 sum;
  for (uint n = 0; n < what.leaves; ++n) {
    sum = leaves[n * what.leaf_stride + quad];
    for (uint rest = before + n; (rest & 1) != 0; rest >>= 1) sum = level(--height, quad) + sum;
    if (height == 0)
      root[quad] = sum;
    else
      upper[(height - 1) * what.level_stride + quad] = sum;
    ++height;
  }
  if (what.complete == 0) return;
  --height;
  if (height > 0) {
    do { sum = level(--height, quad) + sum; } while (height > 0);
    root[quad] = sum;
  }
  if (kNorm) add_square(sum);
}

void main() {
  // A dispatch in two dimensions may have groups too many.
  if (group_number() >= what.groups) return;
  begin_squares();
  for (uint n = 0; n < kQuads; ++n) {
    const uint mine = (group_number() * kQuads + n) * kGroup + my_number();
    if (mine < what.first_quads)
      add_leaves(mine);
    else if (mine - what.first_quads < what.second_quads)
      add_leaves(what.second_at + mine - what.first_quads);
  }
  if (kNorm) leave_share(what.first_share + group_number(), what.shares);
}
