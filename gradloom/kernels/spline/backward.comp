// The gradients of one layer in one dispatch: gradloom/kernels/spline/spline.h, weight_gradient, bias_gradient and
// input_gradient. The first groups own the weights of kInputs inputs to 256 / kInputs outputs, the next 64 biases, the last
// 64 samples of one input. The basis is evaluated again: that is cheaper than to store and load it.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/spline/basis.glsl"

layout(constant_id = 1) const uint kInputs = 4;  // of a group of weights; a power of two up to 64

layout(std430, binding = 0) readonly buffer Parameters { real4 parameters[]; };
layout(std430, binding = 3) readonly buffer Above { real dl_dy[]; };
layout(std430, binding = 3) readonly buffer AboveQuads { real4 dl_dy_quads[]; };
layout(std430, binding = 4) buffer Gradient { real gradient[]; };
layout(std430, binding = 4) buffer GradientQuads { real4 gradient_quads[]; };
layout(std430, binding = 5) writeonly buffer Below { real dl_dx[]; };

const uint kChunk = 256, kOrder = kDegree + 1, kCounted = 64;
// Samples of a chunk, in the order of their spans.
shared real shared_value[kInputs * kChunk * kOrder];
shared real shared_base[kInputs * kChunk];
shared uint shared_place[kInputs * kChunk];  // span * kChunk + sample
shared uint shared_span[kInputs * kChunk];   // by sample
shared uint shared_count[kInputs * kCounted];

// Sorts the samples of a chunk by span, stably, for each input of the group.
void sort_chunk(uint count) {
  const uint me = gl_LocalInvocationID.x;
  if (layer.grid > kCounted) {
    // Everybody counts who comes before its samples.
    for (uint item = me; item < kInputs * kChunk; item += kGroup) {
      const uint n = item / kChunk, s = item % kChunk, span = shared_span[item];
      if (s >= count) continue;
      uint rank = 0;
      for (uint m = 0; m < count; ++m) {
        const uint other = shared_span[n * kChunk + m];
        rank += other < span || (other == span && m < s) ? 1 : 0;
      }
      shared_place[n * kChunk + rank] = span * kChunk + s;
    }
    return;
  }
  // Few spans: somebody counts the samples of each, then puts them behind those of the spans before.
  for (uint item = me; item < kInputs * layer.grid; item += kGroup) {
    const uint n = item / layer.grid, span = item % layer.grid;
    uint found = 0;
    for (uint m = 0; m < count; ++m) found += shared_span[n * kChunk + m] == span ? 1 : 0;
    shared_count[n * kCounted + span] = found;
  }
  barrier();
  for (uint item = me; item < kInputs * layer.grid; item += kGroup) {
    const uint n = item / layer.grid, span = item % layer.grid;
    uint at = n * kChunk;
    for (uint before = 0; before < span; ++before) at += shared_count[n * kCounted + before];
    for (uint m = 0; m < count; ++m)
      if (shared_span[n * kChunk + m] == span) shared_place[at++] = span * kChunk + m;
  }
}

void put(uint at, real value, bool store) {
  if (store) {
    gradient[at] = value;
  } else {
    precise real sum = gradient[at] + value;
    gradient[at] = sum;
  }
}

void put_quad(uint at, real4 value, bool store) {
  if (store) {
    gradient_quads[at] = value;
  } else {
    precise real4 sum = gradient_quads[at] + value;
    gradient_quads[at] = sum;
  }
}

// Adds the samples of a chunk, by span, then by sample, to the rows of four outputs of input n of the group; rows come
// up in order.
void add_chunk(uint n, uint i, uint quad, uint first, uint count, bool store) {
  const uint quads = out_padded() / 4, spline_rows = layer.grid + kDegree, column = i * layer.rows * quads + quad;
  precise real4 sum[kOrder];
  for (uint k = 0; k < kOrder; ++k) sum[k] = real4(0);
  precise real4 base_sum = real4(0);
  uint now = shared_place[n * kChunk] / kChunk;
  if (store)
    for (uint r = 0; r < now; ++r) gradient_quads[column + r * quads] = real4(0);
  for (uint at = n * kChunk; at < n * kChunk + count; ++at) {
    const uint place = shared_place[at], span = place / kChunk;
    if (span != now) {
      const uint leave = min(span - now, kOrder);
      for (uint t = 0; t < leave; ++t) {
        put_quad(column + (now + t) * quads, sum[0], store);
        for (uint k = 0; k < kDegree; ++k) sum[k] = sum[k + 1];
        sum[kDegree] = real4(0);
      }
      if (store)
        for (uint r = now + kOrder; r < span; ++r) gradient_quads[column + r * quads] = real4(0);
      now = span;
    }
    const real4 d = dl_dy_quads[(first + place % kChunk) * quads + quad];
    for (uint k = 0; k < kOrder; ++k) {
      precise real4 term = shared_value[at * kOrder + k] * d;
      sum[k] = sum[k] + term;
    }
    if (has(kHasBase)) {
      precise real4 term = shared_base[at] * d;
      base_sum = base_sum + term;
    }
  }
  for (uint k = 0; k < kOrder; ++k) put_quad(column + (now + k) * quads, sum[k], store);
  if (store)
    for (uint r = now + kOrder; r < spline_rows; ++r) gradient_quads[column + r * quads] = real4(0);
  if (has(kHasBase)) put_quad(column + spline_rows * quads, base_sum, store);
}

void weight_gradient(uint group) {
  const uint lanes = kGroup / kInputs, quads = out_padded() / 4, blocks = (quads + lanes - 1) / lanes;
  const uint me = gl_LocalInvocationID.x, n = me / lanes, first_input = group / blocks * kInputs, i = first_input + n;
  const uint quad = group % blocks * lanes + me % lanes;
  const bool overwrite = !has(kAccumulate), mine = i < layer.in_width && quad < quads;
  if (overwrite && mine && quad * 4 >= out_lanes())
    for (uint r = 0; r < layer.rows; ++r) gradient_quads[(i * layer.rows + r) * quads + quad] = real4(0);
  for (uint first = 0; first < layer.batch; first += kChunk) {
    const uint count = min(kChunk, layer.batch - first);
    barrier();
    for (uint item = me; item < kInputs * kChunk; item += kGroup) {
      const uint input_at = first_input + item / kChunk, s = item % kChunk;
      if (s < count && input_at < layer.in_width)
        shared_span[item] = basis_span(input_at, input_of(first + s, input_at));
      else
        shared_span[item] = 0;
    }
    barrier();
    sort_chunk(count);
    barrier();
    for (uint item = me; item < kInputs * kChunk; item += kGroup) {
      const uint input_at = first_input + item / kChunk;
      if (item % kChunk >= count || input_at >= layer.in_width) continue;
      const real x = input_of(first + shared_place[item] % kChunk, input_at);
      const BasisPoint b = basis_point(input_at, x);
      for (uint k = 0; k < kOrder; ++k) shared_value[item * kOrder + k] = b.value[k];
      if (has(kHasBase)) {
        real value, slope;
        elementary_silu(x, value, slope);
        shared_base[item] = value;
      }
    }
    barrier();
    if (mine && quad * 4 < out_lanes()) add_chunk(n, i, quad, first, count, overwrite && first == 0);
  }
}

void bias_gradient(uint group) {
  const uint j = group * kGroup + gl_LocalInvocationID.x, out_p = out_padded();
  if (j >= out_p) return;
  for (uint first = 0; first < layer.batch; first += kChunk) {
    const uint last = min(first + kChunk, layer.batch);
    precise real sum = real(0);
    for (uint s = first; s < last; ++s) sum = sum + dl_dy[s * out_p + j];
    put(layer.bias_at + j, sum, !has(kAccumulate) && first == 0);
  }
}

// One block of 64 outputs: eight lanes, as two quads, then a tree over them. The sums of all rows grow side by side, so
// that dl_dy is loaded once.
real input_block(uint i, uint s, uint first, BasisPoint b, real base_slope) {
  const uint quads = out_padded() / 4, last = min(first + 64, out_lanes()) / 4;
  const uint row = (i * layer.rows + b.span) * quads, base_row = (i * layer.rows + layer.rows - 1) * quads;
  precise real4 left[kOrder];
  precise real4 right[kOrder];
  precise real4 base_left = real4(0);
  precise real4 base_right = real4(0);
  for (uint k = 0; k < kOrder; ++k) left[k] = right[k] = real4(0);
  for (uint q = first / 4; q < last; q += 2) {
    const bool begins = q == first / 4;
    const real4 d = dl_dy_quads[s * quads + q], e = dl_dy_quads[s * quads + q + 1];
    for (uint k = 0; k < kOrder; ++k) {
      precise real4 first_term = d * parameters[row + k * quads + q];
      precise real4 second_term = e * parameters[row + k * quads + q + 1];
      precise real4 first_sum = left[k] + first_term;
      precise real4 second_sum = right[k] + second_term;
      left[k] = begins ? first_term : first_sum;
      right[k] = begins ? second_term : second_sum;
    }
    if (has(kHasBase)) {
      precise real4 first_term = d * parameters[base_row + q];
      precise real4 second_term = e * parameters[base_row + q + 1];
      precise real4 first_sum = base_left + first_term;
      precise real4 second_sum = base_right + second_term;
      base_left = begins ? first_term : first_sum;
      base_right = begins ? second_term : second_sum;
    }
  }
  precise real4 low = b.slope[0] * left[0];
  precise real4 high = b.slope[0] * right[0];
  for (uint k = 1; k < kOrder; ++k) {
    precise real4 first_product = b.slope[k] * left[k];
    precise real4 second_product = b.slope[k] * right[k];
    low = low + first_product;
    high = high + second_product;
  }
  if (has(kHasBase)) {
    precise real4 first_product = base_slope * base_left;
    precise real4 second_product = base_slope * base_right;
    low = low + first_product;
    high = high + second_product;
  }
  precise real4 four = low + high;
  precise real even = four.x + four.z;
  precise real odd = four.y + four.w;
  precise real result = even + odd;
  return result;
}

void input_gradient(uint group) {
  const uint samples = (layer.batch + kGroup - 1) / kGroup;
  const uint i = group / samples, s = group % samples * kGroup + gl_LocalInvocationID.x;
  if (s >= layer.batch || i >= layer.below_stride) return;
  precise real result = real(0);
  if (i < layer.in_width) {
    const real x = input_of(s, i);
    const BasisPoint b = basis_point(i, x);
    real base_value = real(0), base_slope = real(0);
    if (has(kHasBase)) elementary_silu(x, base_value, base_slope);
    for (uint first = 0; first < layer.out_width; first += 64) {
      precise real block = input_block(i, s, first, b, base_slope);
      precise real sum = result + block;
      result = first == 0 ? block : sum;
    }
    if (has(kScaleInput)) result = result * buffers[layer.scale_at + i];
  }
  dl_dx[s * layer.below_stride + i] = result;
}

void main() {
  const uint group = group_number();
  if (group < layer.weight_groups)
    weight_gradient(group);
  else if (group < layer.weight_groups + layer.bias_groups)
    bias_gradient(group - layer.weight_groups);
  else if (group < layer.weight_groups + layer.bias_groups + layer.input_groups)
    input_gradient(group - layer.weight_groups - layer.bias_groups);
}
