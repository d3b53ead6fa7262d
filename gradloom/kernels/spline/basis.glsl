// The basis functions at one point, as gradloom/kernels/spline/reference.h defines them, and what a layer's shaders share.
#ifndef GRADLOOM_BASIS_GLSL
#define GRADLOOM_BASIS_GLSL

#include "gradloom/kernels/elementary/elementary.glsl"

layout(constant_id = 0) const uint kDegree = 3;
layout(constant_id = 1) const uint kKind = 0;   // bits of flags.inc
layout(constant_id = 2) const uint kShare = 1;  // see subgroup.glsl
layout(constant_id = 3) const uint kGroup = 64;
layout(constant_id = 4) const uint kSubgroup = 1;  // its size, where that is certain; else 1
layout(local_size_x_id = 3) in;

#include "gradloom/kernels/shader/subgroup.glsl"

// Letters and layouts: spline.h. Activations and their gradients are row-major here: (B, stride).
layout(push_constant) uniform Layer {
#include "gradloom/kernels/spline/push.inc"
} layer;

#include "gradloom/kernels/spline/flags.inc"
const bool kHasBase = (kKind & kKindBase) != 0, kFreeKnots = (kKind & kKindFreeKnots) != 0,
           kExtends = (kKind & kKindExtends) != 0;
const uint kOrder = kDegree + 1;
// Shape::row_differences() and slopes() of spline.h.
const bool kRowDifferences = !kExtends;
const uint kSlopes = kRowDifferences ? kDegree : kOrder;

bool has(uint flag) { return (layer.flags & flag) != 0; }
uint out_padded() { return (layer.out_width + 15) / 16 * 16; }
uint out_lanes() { return (layer.out_width + 7) / 8 * 8; }

layout(std430, binding = 1) readonly buffer Buffers { real buffers[]; };
layout(std430, binding = 2) readonly buffer Inputs { real inputs[]; };

struct BasisPoint {
  uint span;
  real value[8];
  real slope[8];  // of rows, or of differences of rows
};

// What all samples of one input share.
struct InputGrid {
  uint i;
  real lo, hi, inverse_step, mean, scale;
};

InputGrid grid_of(uint i) {
  InputGrid g;
  g.i = i;
  g.lo = buffers[layer.lo_at + i];
  g.hi = buffers[layer.hi_at + i];
  g.inverse_step = kFreeKnots ? real(0) : buffers[layer.inverse_step_at + i];
  g.mean = has(kNormalise) ? buffers[layer.mean_at + i] : real(0);
  g.scale = has(kNormalise) ? buffers[layer.scale_at + i] : real(1);
  return g;
}

real input_of(uint s, InputGrid g) {
  precise real x = inputs[s * layer.x_stride + g.i];
  if (has(kNormalise)) {
    precise real centred = x - g.mean;
    x = centred * g.scale;
  }
  return x;
}

void uniform_basis(real t, real inverse_step, inout BasisPoint b) {
  b.value[0] = real(1);
  [[unroll]] for (uint d = 1; d <= kDegree; ++d) {
    if (d == kDegree && kRowDifferences) {
      for (uint k = 0; k < kDegree; ++k) {
        precise real slope = b.value[k] * inverse_step;
        b.slope[k] = slope;
      }
    } else if (d == kDegree) {
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
      precise real sum = mul_add(left, share, saved);
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
  [[unroll]] for (uint d = 1; d <= kDegree; ++d) {
    const uint inverse = layer.inverse_at + (i * kDegree + d - 1) * count;
    precise real share[8];
    for (uint r = 0; r < d; ++r) share[r] = b.value[r] * buffers[inverse + left + 1 + r - d];
    const real degree = real(kDegree);
    if (d == kDegree && kRowDifferences) {
      for (uint k = 0; k < kDegree; ++k) {
        precise real slope = share[k] * degree;
        b.slope[k] = slope;
      }
    } else if (d == kDegree) {
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
      precise real sum = mul_add(right, share[r], saved);
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

// The base branch at x: with `clamp` that of the edge, when x lies beyond one (NaN does not).
void base_point(InputGrid g, real x, out real value, out real slope) {
  const bool below = has(kClamp) && x < g.lo, above = has(kClamp) && x > g.hi;
  elementary_silu(below ? g.lo : (above ? g.hi : x), value, slope);
  if (below || above) slope = real(0);
}

BasisPoint basis_point(InputGrid g, real x) {
  const bool lost = is_nan(x), below = lost || x < g.lo, above = !lost && x > g.hi;
  const real inside = kExtends ? x : (below ? g.lo : (above ? g.hi : x));
  const int last = int(layer.grid) - 1;
  BasisPoint b = nothing();
  int interval = 0;
  bool beyond_all = false;  // `extend`: no function reaches this far
  if (!kFreeKnots) {
    precise real offset = inside - g.lo;
    precise real u = offset * g.inverse_step;
    const real reach = real(kDegree + 1), low = -reach, high = real(layer.grid) + reach;
    const real whole = floor(u < low ? low : (high < u ? high : u));
    beyond_all = kExtends && (lost || !(whole >= -real(kDegree) && whole < real(layer.grid + kDegree)));
    interval = int(whole);
    if (!kExtends) interval = clamp(interval, 0, last);
    precise real t = u - real(interval);
    uniform_basis(t, g.inverse_step, b);
  } else {
    // `extend` has p intervals more on each side.
    const uint knots = layer.extended_at + g.i * (layer.grid + 4 * kDegree + 1);
    const uint first = kExtends ? kDegree : 2 * kDegree;
    const uint end = layer.grid + (kExtends ? 3 * kDegree : 2 * kDegree + 1);
    if (kExtends) beyond_all = lost || !(x >= buffers[knots + first] && x < buffers[knots + end]);
    interval = int(first + knots_below(g.i, first, end, inside)) - 1 - 2 * int(kDegree);
    // Those beyond all knots are dropped below; until then they need some interval that exists.
    interval = kExtends ? clamp(interval, -int(kDegree), last + int(kDegree)) : clamp(interval, 0, last);
    free_basis(uint(interval + 2 * int(kDegree)), inside, g.i, b);
  }
  if (kExtends) {
    shift_to_grid(interval, b);
    if (beyond_all) b = nothing();
    return b;
  }
  b.span = uint(interval);
  if (!(below || above)) return b;
  if (has(kLinear)) {
    precise real beyond = x - inside;
    for (uint k = 0; k <= kDegree; ++k) {
      precise real slope = b.slope[k];
      if (kRowDifferences) slope = (k > 0 ? b.slope[max(k, 1) - 1] : real(0)) - slope;
      precise real value = mul_add(slope, beyond, b.value[k]);
      b.value[k] = value;
    }
  } else {
    for (uint k = 0; k <= kDegree; ++k) {
      b.slope[k] = real(0);
      if (has(kZero)) b.value[k] = real(0);
    }
  }
  return b;
}

// Row r of the basis from its functions that are not zero: function k = r - span, if k <= p.
real pick(real of[kOrder], uint k) {
  real found = of[0];
  [[unroll]] for (uint other = 1; other < kOrder; ++other) found = k == other ? of[other] : found;
  return found;
}

#endif
