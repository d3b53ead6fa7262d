// The basis functions at one point, as gradloom/kernels/spline/reference.h defines them, and what a layer's shaders share.
#ifndef GRADLOOM_BASIS_GLSL
#define GRADLOOM_BASIS_GLSL

#include "gradloom/kernels/elementary/elementary.glsl"

layout(constant_id = 0) const uint kDegree = 3;

// Letters and layouts: spline.h. Activations and their gradients are row-major here: (B, stride).
layout(push_constant) uniform Layer {
  uint batch;
  uint in_width;
  uint out_width;
  uint rows;  // R, the base row included
  uint grid;
  uint flags;
  uint x_stride;
  uint bias_at;  // element in the layer's parameters
  // Elements of the model's buffers.
  uint lo_at;
  uint hi_at;
  uint inverse_step_at;
  uint extended_at;
  uint inverse_at;
  uint mean_at;
  uint scale_at;
  // Backward only.
  uint weight_groups;
  uint bias_groups;
  uint input_groups;
  uint below_stride;  // of dl_dx
} layer;

const uint kHasBase = 1, kHasBias = 2, kFreeKnots = 4, kNormalise = 8, kAccumulate = 16, kScaleInput = 32;
const uint kOutsideShift = 8;  // two bits of the flags
const uint kLinear = 0, kClamp = 1, kExtend = 2, kZero = 3;

bool has(uint flag) { return (layer.flags & flag) != 0; }
uint out_padded() { return (layer.out_width + 15) / 16 * 16; }
uint out_lanes() { return (layer.out_width + 7) / 8 * 8; }

layout(std430, binding = 1) readonly buffer Buffers { real buffers[]; };
layout(std430, binding = 2) readonly buffer Inputs { real inputs[]; };

struct BasisPoint {
  uint span;
  real value[8];
  real slope[8];
};

real input_of(uint s, uint i) {
  precise real x = inputs[s * layer.x_stride + i];
  if (has(kNormalise)) {
    precise real centred = x - buffers[layer.mean_at + i];
    x = centred * buffers[layer.scale_at + i];
  }
  return x;
}

void uniform_basis(real t, real inverse_step, inout BasisPoint b) {
  b.value[0] = real(1);
  for (uint d = 1; d <= kDegree; ++d) {
    if (d == kDegree) {
      precise real first = -b.value[0] * inverse_step;
      b.slope[0] = first;
      for (uint k = 1; k < kDegree; ++k) {
        precise real difference = b.value[k - 1] - b.value[k];
        precise real slope = difference * inverse_step;
        b.slope[k] = slope;
      }
      precise real last = b.value[kDegree - 1] * inverse_step;
      b.slope[kDegree] = last;
    }
    precise real saved = real(0);
    for (uint r = 0; r < d; ++r) {
      precise real share = b.value[r] * kInverseDegree[d];
      precise real left = real(r + 1) - t;
      precise real part = left * share;
      precise real sum = saved + part;
      b.value[r] = r == 0 ? part : sum;
      precise real moved = t + real(d - 1 - r);
      saved = (r + 1 == d ? t : moved) * share;
    }
    b.value[d] = saved;
  }
}

void free_basis(uint left, real x, uint i, inout BasisPoint b) {
  const uint count = layer.grid + 4 * kDegree + 1;
  const uint knots = layer.extended_at + i * count;
  b.value[0] = real(1);
  for (uint d = 1; d <= kDegree; ++d) {
    const uint inverse = layer.inverse_at + (i * kDegree + d - 1) * count;
    precise real share[8];
    for (uint r = 0; r < d; ++r) share[r] = b.value[r] * buffers[inverse + left + 1 + r - d];
    if (d == kDegree) {
      const real degree = real(kDegree);
      precise real first = -share[0] * degree;
      b.slope[0] = first;
      for (uint k = 1; k < kDegree; ++k) {
        precise real difference = share[k - 1] - share[k];
        precise real slope = difference * degree;
        b.slope[k] = slope;
      }
      precise real last = share[kDegree - 1] * degree;
      b.slope[kDegree] = last;
    }
    precise real saved = real(0);
    for (uint r = 0; r < d; ++r) {
      precise real right = buffers[knots + left + 1 + r] - x;
      precise real part = right * share[r];
      precise real sum = saved + part;
      b.value[r] = sum;
      precise real from = x - buffers[knots + left + 1 + r - d];
      saved = from * share[r];
    }
    b.value[d] = saved;
  }
}

// How many of the knots [first, last) of an input are not greater than x.
uint knots_below(uint i, uint first, uint last, real x) {
  const uint knots = layer.extended_at + i * (layer.grid + 4 * kDegree + 1);
  uint low = first, high = last;
  while (low < high) {
    const uint middle = (low + high) / 2;
    if (x < buffers[knots + middle])
      high = middle;
    else
      low = middle + 1;
  }
  return low - first;
}

void shift_to_grid(int interval, inout BasisPoint b) {
  const int p = int(kDegree), last = int(layer.grid) - 1;
  const int span = clamp(interval, 0, last), shift = span - interval;
  b.span = uint(span);
  if (shift == 0) return;
  const BasisPoint old = b;
  for (int k = 0; k <= p; ++k) {
    const int from = k + shift;
    const bool exists = from >= 0 && from <= p;
    b.value[k] = exists ? old.value[from] : real(0);
    b.slope[k] = exists ? old.slope[from] : real(0);
  }
}

BasisPoint nothing() {
  BasisPoint b;
  b.span = 0;
  for (uint k = 0; k < 8; ++k) {
    b.value[k] = real(0);
    b.slope[k] = real(0);
  }
  return b;
}

// Both kinds of knots and all policies meet in one evaluation each: shaders inline everything, and a second one would
// double what a driver compiles.
BasisPoint basis_point(uint i, real x) {
  const uint outside = layer.flags >> kOutsideShift & 3u;
  const bool extend = outside == kExtend;
  const real lo = buffers[layer.lo_at + i], hi = buffers[layer.hi_at + i];
  const bool below = !(x >= lo), above = x > hi;
  const real inside = extend ? x : (below ? lo : (above ? hi : x));
  const int last = int(layer.grid) - 1;
  BasisPoint b = nothing();
  int interval = 0;
  if (!has(kFreeKnots)) {
    const real inverse_step = buffers[layer.inverse_step_at + i];
    precise real offset = inside - lo;
    precise real u = offset * inverse_step;
    const real reach = real(kDegree + 1), low = -reach, high = real(layer.grid) + reach;
    const real whole = floor(u < low ? low : (high < u ? high : u));
    if (extend && !(whole >= -real(kDegree) && whole < real(layer.grid + kDegree))) return b;
    interval = int(whole);
    if (!extend) interval = clamp(interval, 0, last);
    precise real t = u - real(interval);
    uniform_basis(t, inverse_step, b);
  } else {
    // `extend` has p intervals more on each side.
    const uint knots = layer.extended_at + i * (layer.grid + 4 * kDegree + 1);
    const uint first = extend ? kDegree : 2 * kDegree;
    const uint end = layer.grid + (extend ? 3 * kDegree : 2 * kDegree + 1);
    if (extend && !(x >= buffers[knots + first] && x < buffers[knots + end])) return b;
    interval = int(first + knots_below(i, first, end, inside)) - 1 - 2 * int(kDegree);
    if (!extend) interval = clamp(interval, 0, last);
    free_basis(uint(interval + 2 * int(kDegree)), inside, i, b);
  }
  if (extend) {
    shift_to_grid(interval, b);
    return b;
  }
  b.span = uint(interval);
  if (!(below || above)) return b;
  if (outside == kLinear) {
    precise real beyond = x - inside;
    for (uint k = 0; k <= kDegree; ++k) {
      precise real rise = b.slope[k] * beyond;
      precise real value = b.value[k] + rise;
      b.value[k] = value;
    }
  } else {
    for (uint k = 0; k <= kDegree; ++k) {
      b.slope[k] = real(0);
      if (outside == kZero) b.value[k] = real(0);
    }
  }
  return b;
}

uint basis_span(uint i, real x) { return basis_point(i, x).span; }

#endif
