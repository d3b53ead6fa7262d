// The norm of a gradient, by the groups that make its elements final (gradloom/kernels/optimizer/device.h). Each
// invocation calls begin_squares(), add_square() for what it made final, and, all of a group together, leave_share().
// The group of a step that is done last adds up what all have left: who that is changes, what it adds and in which
// order does not.
//
// Include it behind kGroup, kNorm, my_number(), meet(), with GRADLOOM_NORM_BINDING.
#ifndef GRADLOOM_NORM_GLSL
#define GRADLOOM_NORM_GLSL

layout(std430, binding = GRADLOOM_NORM_BINDING) coherent buffer Norm {
  uint done;        // groups of this step; 0 between steps
  uint not_finite;  // 1 after the first step whose squares were not
  real squares;
  real share[];
} norm;

shared real shared_sum[kNorm ? kGroup : 1];
shared bool shared_is_last;

// Few elements at a time are summed by themselves: that loses fewer digits.
real4 many_squares, few_squares;
uint few;

void begin_squares() {
  many_squares = few_squares = real4(0);
  few = 0;
}

void add_square(real4 value) {
  precise real4 more = mul_add(value, value, few_squares);
  few_squares = more;
  if (++few < 32) return;
  precise real4 all = many_squares + few_squares;
  many_squares = all;
  few_squares = real4(0);
  few = 0;
}

// A tree: me and me + kGroup / 2 first. Everyone gets the result.
real sum_of_group(real mine) {
  const uint me = my_number();
  shared_sum[me] = mine;
  for (uint half_count = kGroup / 2; half_count > 0; half_count /= 2) {
    meet();
    if (me < half_count) {
      precise real both = shared_sum[me] + shared_sum[me + half_count];
      shared_sum[me] = both;
    }
  }
  meet();
  return shared_sum[0];
}

// `number` of the `shares` of this step is this group's.
void leave_share(uint number, uint shares) {
  const uint me = my_number();
  precise real4 quad = many_squares + few_squares;
  precise real low = quad.x + quad.y, high = quad.z + quad.w, mine = low + high;
  const real of_group = sum_of_group(mine);
  if (me == 0) {
    norm.share[number] = of_group;
    memoryBarrierBuffer();
    shared_is_last = atomicAdd(norm.done, 1) == shares - 1;
    memoryBarrierBuffer();
  }
  // What the other groups left came to invocation 0 with the counter; from there it must come to all.
  memoryBarrier();
  meet();
  if (!shared_is_last) return;
  memoryBarrierBuffer();
  precise real some = real(0);
  for (uint n = me; n < shares; n += kGroup) some = some + norm.share[n];
  const real all = sum_of_group(some);
  if (me != 0) return;
  norm.squares = all;
  if (!is_finite(all)) norm.not_finite = 1;
  norm.done = 0;
}

#endif
