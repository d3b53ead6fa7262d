// Invocations that load for each other. kShare neighbours of a subgroup (a power of two, at most the subgroup's size) each
// load one of kShare values and hand it to the others; with kShare = 1 everyone loads for itself, and no subgroup
// operation is left in the pipeline. All neighbours must be active where they exchange.
#ifndef GRADLOOM_SUBGROUP_GLSL
#define GRADLOOM_SUBGROUP_GLSL

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

// My number in the workgroup: that of the subgroups counts, where they matter.
uint my_number() {
  return kShare == 1 ? gl_LocalInvocationID.x : gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
}
uint my_share() { return kShare == 1 ? 0 : gl_SubgroupInvocationID & (kShare - 1); }

uint other_number(uint m) { return gl_SubgroupInvocationID & ~(kShare - 1) | m; }
real from(real value, uint m) { return kShare == 1 ? value : subgroupShuffle(value, other_number(m)); }
uint from(uint value, uint m) { return kShare == 1 ? value : subgroupShuffle(value, other_number(m)); }

// A barrier. A group that is one subgroup needs none that stops it; some drivers keep everything that lives across one in
// memory.
void meet() {
  if (kGroup <= kSubgroup)
    subgroupBarrier();
  else
    barrier();
}

uint least(uint value) {
  if (kShare == 1) return value;
  [[unroll]] for (uint step = 1; step < kShare; step *= 2) value = min(value, subgroupShuffleXor(value, step));
  return value;
}
uint greatest(uint value) {
  if (kShare == 1) return value;
  [[unroll]] for (uint step = 1; step < kShare; step *= 2) value = max(value, subgroupShuffleXor(value, step));
  return value;
}

#endif
