// The gradients of one layer's weights and biases: gradloom/kernels/spline/spline.h, weight_gradient and bias_gradient. The
// first groups own the weights of layer.tile inputs to kLanes * 4 outputs, kInputs inputs at a time; the last ones
// kGroup biases. The basis is evaluated again: that is cheaper than to store and load it.
//
// With kNorm each group also leaves the sum of squares of what it made final. The group of a step that is done last adds
// up what all have left: who that is changes, what it adds and in which order does not.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GRADLOOM_OWN_GROUP

#include "gradloom/kernels/spline/basis.glsl"

layout(constant_id = 5) const uint kLanes = 16;  // invocations along the outputs, a multiple of kShare
layout(constant_id = 6) const uint kSpans = 64;  // at least G
layout(constant_id = 7) const uint kHeld = 1;    // dl_dy of that many samples is kept by who works with it; 1: none
layout(constant_id = 8) const bool kNorm = false;

layout(std430, binding = 3) readonly buffer Above { real dl_dy[]; };
layout(std430, binding = 3) readonly buffer AboveQuads { real4 dl_dy_quads[]; };
layout(std430, binding = 4) buffer Gradient { real gradient[]; };
layout(std430, binding = 4) buffer GradientQuads { real4 gradient_quads[]; };
layout(std430, binding = 5) coherent buffer Norm {
  uint done;        // groups of this step; 0 between steps
  uint not_finite;  // 1 after the first step whose squares were not
  real squares;
  real share[];
} norm;

const uint kInputs = kGroup / kLanes;
const uint kChunk = 256;
const bool kFewSpans = kShare > 1 || kSpans <= 64;
// By input and sample of a chunk. Neighbours that share evaluate the basis where they need it.
const uint kStored = kShare == 1 ? kInputs * kChunk : 1;
shared real shared_value[kStored * kOrder];
shared real shared_base[kStored];
shared uint shared_span[kInputs * kChunk];
shared uint shared_place[kInputs * kChunk];       // samples in the order of their spans
shared uint shared_begin[kInputs * (kSpans + 1)];  // places of a span: [begin of it, begin of the next)
shared real shared_sum[kNorm ? kGroup : 1];
shared bool shared_is_last;

real4 held[kHeld];
// Of the squares. Few elements at a time are summed by themselves: that loses fewer digits.
real4 many_squares, few_squares;
uint few;

void hold(uint first, uint count, uint quad) {
  if (kHeld == 1) return;
  const uint quads = out_padded() / 4;
  uint s = 0;
  [[dont_unroll]] do { held[s] = dl_dy_quads[(first + s) * quads + quad]; } while (++s < count);
}

real base_value(InputGrid g, real x) {
  real value, slope;
  base_point(g, x, value, slope);
  return value;
}

// The samples of a chunk, by everyone who works for input i.
void evaluate(uint n, uint i, uint first, uint count) {
  const InputGrid g = grid_of(i);
  for (uint s = my_number() % kLanes; s < count; s += kLanes) {
    const real x = input_of(first + s, g);
    const BasisPoint b = basis_point(g, x);
    const uint at = n * kChunk + s;
    shared_span[at] = b.span;
    if (kShare == 1) {
      [[unroll]] for (uint k = 0; k < kOrder; ++k) shared_value[at * kOrder + k] = b.value[k];
      if (kHasBase) shared_base[at] = base_value(g, x);
    }
  }
}

// Sorts the samples of a chunk by span, stably. Few spans, or neighbours that share: each span finds its own samples.
void sort_few(uint n, uint count) {
  const uint begins = n * (kSpans + 1);
  for (uint span_block = 0; span_block <= layer.grid; span_block += kLanes) {
    const uint span = span_block + my_number() % kLanes;
    uint at = 0, block = 0;
    do {
      const uint mine = shared_span[n * kChunk + min(block + my_share(), count - 1)];
      [[unroll]] for (uint m = 0; m < kShare; ++m) at += block + m < count && from(mine, m) < span ? 1 : 0;
      block += kShare;
    } while (block < count);
    if (span <= layer.grid) shared_begin[begins + span] = at;
    block = 0;
    do {
      const uint mine = shared_span[n * kChunk + min(block + my_share(), count - 1)];
      [[unroll]] for (uint m = 0; m < kShare; ++m)
        if (from(mine, m) == span && block + m < count) shared_place[n * kChunk + at++] = block + m;
      block += kShare;
    } while (block < count);
  }
}

// Many spans: each sample counts who comes before it.
void sort_many(uint n, uint count) {
  for (uint s = my_number() % kLanes; s < count; s += kLanes) {
    const uint span = shared_span[n * kChunk + s];
    uint rank = 0;
    for (uint other = 0; other < count; ++other) {
      const uint its = shared_span[n * kChunk + other];
      rank += its < span || (its == span && other < s) ? 1 : 0;
    }
    shared_place[n * kChunk + rank] = s;
  }
}

void find_begins(uint n, uint count) {
  for (uint span = my_number() % kLanes; span <= layer.grid; span += kLanes) {
    uint low = 0, high = count;
    while (low < high) {
      const uint middle = (low + high) / 2;
      if (shared_span[n * kChunk + shared_place[n * kChunk + middle]] < span)
        low = middle + 1;
      else
        high = middle;
    }
    shared_begin[n * (kSpans + 1) + span] = low;
  }
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

void put_quad(uint at, real4 value, bool store, bool touched, bool last) {
  if (store) {
    gradient_quads[at] = value;
  } else if (touched) {
    precise real4 sum = gradient_quads[at] + value;
    gradient_quads[at] = sum;
    value = sum;
  } else if (kNorm && last) {
    value = gradient_quads[at];
  }
  if (kNorm && last) add_square(value);
}

// Adds the samples of a chunk, by span, then by sample, to the rows of four outputs of input i, the n-th of the group. A
// row is complete when its last span is.
void add_chunk(uint n, uint i, uint quad, uint first, uint count, bool stores, bool overwrites) {
  const uint quads = out_padded() / 4, column = i * layer.rows * quads + quad, begins = n * (kSpans + 1);
  const bool last = first + count == layer.batch;
  InputGrid g;
  if (kShare > 1) g = grid_of(i);
  precise real4 sum[kOrder];
  [[unroll]] for (uint k = 0; k < kOrder; ++k) sum[k] = real4(0);
  precise real4 base_sum = real4(0);
  uint at = 0, reach = 0, row = 0;
  [[dont_unroll]] do {
    const uint end = row < layer.grid ? shared_begin[begins + row + 1] : at;
    if (at < end) {
      reach = row + kOrder;
      [[dont_unroll]] do {
        // My share: one sample.
        const uint mine = shared_place[n * kChunk + min(at + my_share(), end - 1)];
        real value[kOrder], base = real(0);
        if (kShare > 1) {
          const real x = input_of(first + mine, g);
          const BasisPoint b = basis_point(g, x);
          [[unroll]] for (uint k = 0; k < kOrder; ++k) value[k] = b.value[k];
          if (kHasBase) base = base_value(g, x);
        } else {
          [[unroll]] for (uint k = 0; k < kOrder; ++k) value[k] = shared_value[(n * kChunk + mine) * kOrder + k];
          if (kHasBase) base = shared_base[n * kChunk + mine];
        }
        [[unroll]] for (uint m = 0; m < kShare; ++m) {
          const bool counts = at + m < end;
          const uint s = from(mine, m);
          const real4 d = kHeld > 1 ? held[s] : dl_dy_quads[(first + s) * quads + quad];
          [[unroll]] for (uint k = 0; k < kOrder; ++k) {
            precise real4 more = mul_add(from(value[k], m), d, sum[k]);
            sum[k] = counts ? more : sum[k];
          }
          if (kHasBase) {
            precise real4 more = mul_add(from(base, m), d, base_sum);
            base_sum = counts ? more : base_sum;
          }
        }
        at += kShare;
      } while (at < end);
    }
    at = end;
    if (stores) put_quad(column + row * quads, sum[0], overwrites, row < reach, last);
    [[unroll]] for (uint k = 0; k < kDegree; ++k) sum[k] = sum[k + 1];
    sum[kDegree] = real4(0);
  } while (++row < layer.grid + kDegree);
  if (kHasBase && stores) put_quad(column + row * quads, base_sum, overwrites, true, last);
}

void weight_gradient(uint group) {
  const uint quads = out_padded() / 4, blocks = (quads + kLanes - 1) / kLanes;
  const uint me = my_number(), n = me / kLanes, first_input = group / blocks * layer.tile;
  const uint place = group % blocks * kLanes + me % kLanes;
  const bool overwrite = !has(kAccumulate);
  // Who has no output of its own keeps the others company: they need what it loads.
  const bool works = place * 4 < out_lanes();
  const uint quad = works ? place : 0, last_input = min(first_input + layer.tile, layer.in_width);
  if (overwrite && !works && place < quads)
    for (uint i = first_input + n; i < last_input; i += kInputs)
      for (uint r = 0; r < layer.rows; ++r) gradient_quads[(i * layer.rows + r) * quads + place] = real4(0);
  for (uint first = 0; first < layer.batch; first += kChunk) {
    const uint count = min(kChunk, layer.batch - first);
    hold(first, count, quad);
    for (uint round = first_input; round < last_input; round += kInputs) {
      const uint i = round + n;
      const bool exists = i < last_input;
      meet();
      if (exists) evaluate(n, i, first, count);
      meet();
      if (kFewSpans) {
        if (exists) sort_few(n, count);
      } else {
        if (exists) sort_many(n, count);
        meet();
        if (exists) find_begins(n, count);
      }
      meet();
      if (exists) add_chunk(n, i, quad, first, count, works, overwrite && first == 0);
    }
  }
}

void bias_gradient(uint group) {
  const uint j = group * kGroup + my_number(), out_p = out_padded();
  if (j >= out_p) return;
  for (uint first = 0; first < layer.batch; first += kChunk) {
    const uint last = min(first + kChunk, layer.batch);
    precise real sum = real(0);
    uint s = first;
    do { sum = sum + dl_dy[s * out_p + j]; } while (++s < last);
    if (has(kAccumulate) || first > 0) sum = gradient[layer.bias_at + j] + sum;
    gradient[layer.bias_at + j] = sum;
    if (kNorm && last == layer.batch) add_square(real4(sum, 0, 0, 0));
  }
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

void leave_share(uint group) {
  const uint me = my_number();
  precise real4 quad = many_squares + few_squares;
  precise real low = quad.x + quad.y, high = quad.z + quad.w, mine = low + high;
  const real of_group = sum_of_group(mine);
  if (me == 0) {
    norm.share[layer.first_share + group] = of_group;
    memoryBarrierBuffer();
    shared_is_last = atomicAdd(norm.done, 1) == layer.shares - 1;
    memoryBarrierBuffer();
  }
  // What the other groups left came to invocation 0 with the counter; from there it must come to all.
  memoryBarrier();
  meet();
  if (!shared_is_last) return;
  memoryBarrierBuffer();
  precise real some = real(0);
  for (uint n = me; n < layer.shares; n += kGroup) some = some + norm.share[n];
  const real all = sum_of_group(some);
  if (me != 0) return;
  norm.squares = all;
  if (!is_finite(all)) norm.not_finite = 1;
  norm.done = 0;
}

void main() {
  const uint group = group_number();
  // A dispatch in two dimensions may have groups too many.
  if (group >= layer.weight_groups + layer.bias_groups) return;
  many_squares = few_squares = real4(0);
  few = 0;
  if (group < layer.weight_groups)
    weight_gradient(group);
  else
    bias_gradient(group - layer.weight_groups);
  if (kNorm) leave_share(group);
}
