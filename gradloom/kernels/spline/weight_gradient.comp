// The gradients of one layer's weights and biases: gradloom/kernels/spline/spline.h, weight_gradient and bias_gradient. The
// first groups own the weights of layer.tile inputs to kLanes * 4 outputs, kInputs inputs at a time; the last ones
// kGroup biases. The basis is evaluated again: that is cheaper than to store and load it.
//
// Leaves 0 and 1 of a step go straight to the gradient: the first is stored, the other one added. With more leaves
// (kLeaves) so many groups work for each, and its sums are stored beside those of the others, for reduce/tree.comp.
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
#define GRADLOOM_NORM_BINDING 5
#include "gradloom/kernels/reduce/norm.glsl"

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

real4 held[kHeld];
uint first_sample, end_sample;  // of this group
uint sums_at;                   // its place in the gradient, in elements
real nothing_added;             // what a leaf leaves empty: reduce/tree_sum.h

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

void put_quad(uint at, real4 value, bool store, bool touched, bool last) {
  if (store) {
    if (!touched) value = real4(nothing_added);
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
  const uint quads = out_padded() / 4, column = sums_at / 4 + i * layer.rows * quads + quad, begins = n * (kSpans + 1);
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

// Whether the leaf that begins with this sample is stored; else it is added to what there is.
bool stores_leaf(uint first) { return has(kLeaves) || (first == 0 && !has(kAccumulate)); }

void weight_gradient(uint group) {
  const uint quads = out_padded() / 4, blocks = (quads + kLanes - 1) / kLanes;
  const uint me = my_number(), n = me / kLanes, first_input = group / blocks * layer.tile;
  const uint place = group % blocks * kLanes + me % kLanes;
  // Who has no output of its own keeps the others company: they need what it loads.
  const bool works = place * 4 < out_lanes();
  const uint quad = works ? place : 0, last_input = min(first_input + layer.tile, layer.in_width);
  if (stores_leaf(first_sample) && !works && place < quads)
    for (uint i = first_input + n; i < last_input; i += kInputs)
      for (uint r = 0; r < layer.rows; ++r)
        gradient_quads[sums_at / 4 + (i * layer.rows + r) * quads + place] = real4(nothing_added);
  for (uint first = first_sample; first < end_sample; first += kChunk) {
    const uint count = min(kChunk, end_sample - first);
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
      if (exists) add_chunk(n, i, quad, first, count, works, stores_leaf(first));
    }
  }
}

void bias_gradient(uint group) {
  const uint j = group * kGroup + my_number(), out_p = out_padded(), at = sums_at + layer.bias_at + j;
  if (j >= out_p) return;
  for (uint first = first_sample; first < end_sample; first += kChunk) {
    const uint last = min(first + kChunk, end_sample);
    precise real sum = real(0);
    uint s = first;
    do { sum = sum + dl_dy[s * out_p + j]; } while (++s < last);
    if (!stores_leaf(first)) sum = gradient[at] + sum;
    gradient[at] = sum;
    if (kNorm && last == layer.batch) add_square(real4(sum, 0, 0, 0));
  }
}

void main() {
  // As many groups for each part of the batch. A dispatch in two dimensions may have groups too many.
  const uint groups = layer.weight_groups + layer.bias_groups, part = group_number() / groups;
  if (part >= layer.parts) return;
  const uint group = group_number() - part * groups;
  first_sample = layer.first_sample + part * layer.part_samples;
  end_sample = min(first_sample + layer.part_samples, layer.batch);
  sums_at = part * layer.part_stride;
  nothing_added = has(kLeaves) && (first_sample > 0 || has(kAccumulate)) ? negative_zero() : real(0);
  begin_squares();
  if (group < layer.weight_groups)
    weight_gradient(group);
  else
    bias_gradient(group - layer.weight_groups);
  if (kNorm) leave_share(layer.first_share + group, layer.shares);
}
