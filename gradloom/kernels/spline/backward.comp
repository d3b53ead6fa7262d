// The gradients of one layer in one dispatch: gradloom/kernels/spline/spline.h, weight_gradient, bias_gradient and
// input_gradient. The first groups own 64 outputs of one input's weights, the next 64 biases, the last 64 samples of one
// input. The basis is evaluated again: that is cheaper than to store and load it.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/spline/basis.glsl"

layout(std430, binding = 0) readonly buffer Parameters { real4 parameters[]; };
layout(std430, binding = 3) readonly buffer Above { real dl_dy[]; };
layout(std430, binding = 3) readonly buffer AboveQuads { real4 dl_dy_quads[]; };
layout(std430, binding = 4) buffer Gradient { real gradient[]; };
layout(std430, binding = 5) writeonly buffer Below { real dl_dx[]; };

const uint kChunk = 256;
shared real shared_value[kChunk * (kDegree + 1)];
shared real shared_base[kChunk];
shared uint shared_span[kChunk];
shared uint shared_order[kChunk];

void put(uint at, real value, bool store) {
  if (store) {
    gradient[at] = value;
  } else {
    precise real sum = gradient[at] + value;
    gradient[at] = sum;
  }
}

// Adds the samples of a chunk, by span, then by sample, to the rows of output j; rows come up in order.
void add_chunk(uint i, uint j, uint first, uint count, bool store) {
  const uint out_p = out_padded(), spline_rows = layer.grid + kDegree;
  const uint column = i * layer.rows * out_p + j;
  precise real sum[kDegree + 1];
  for (uint k = 0; k <= kDegree; ++k) sum[k] = real(0);
  precise real base_sum = real(0);
  uint now = shared_span[shared_order[0]];
  if (store)
    for (uint r = 0; r < now; ++r) gradient[column + r * out_p] = real(0);
  for (uint n = 0; n < count; ++n) {
    const uint m = shared_order[n], span = shared_span[m];
    if (span != now) {
      const uint leave = min(span - now, kDegree + 1);
      for (uint t = 0; t < leave; ++t) {
        put(column + (now + t) * out_p, sum[0], store);
        for (uint k = 0; k < kDegree; ++k) sum[k] = sum[k + 1];
        sum[kDegree] = real(0);
      }
      if (store)
        for (uint r = now + kDegree + 1; r < span; ++r) gradient[column + r * out_p] = real(0);
      now = span;
    }
    const real d = dl_dy[(first + m) * out_p + j];
    for (uint k = 0; k <= kDegree; ++k) {
      precise real term = shared_value[m * (kDegree + 1) + k] * d;
      sum[k] = sum[k] + term;
    }
    if (has(kHasBase)) {
      precise real term = shared_base[m] * d;
      base_sum = base_sum + term;
    }
  }
  for (uint k = 0; k <= kDegree; ++k) put(column + (now + k) * out_p, sum[k], store);
  if (store)
    for (uint r = now + kDegree + 1; r < spline_rows; ++r) gradient[column + r * out_p] = real(0);
  if (has(kHasBase)) put(column + spline_rows * out_p, base_sum, store);
}

void weight_gradient(uint group) {
  const uint me = gl_LocalInvocationID.x, blocks = (out_padded() + kGroup - 1) / kGroup;
  const uint i = group / blocks, j = group % blocks * kGroup + me;
  const bool overwrite = !has(kAccumulate);
  if (overwrite && j >= out_lanes() && j < out_padded())
    for (uint r = 0; r < layer.rows; ++r) gradient[(i * layer.rows + r) * out_padded() + j] = real(0);
  for (uint first = 0; first < layer.batch; first += kChunk) {
    const uint count = min(kChunk, layer.batch - first);
    barrier();
    for (uint n = me; n < count; n += kGroup) {
      const real x = input_of(first + n, i);
      const BasisPoint b = basis_point(i, x);
      shared_span[n] = b.span;
      for (uint k = 0; k <= kDegree; ++k) shared_value[n * (kDegree + 1) + k] = b.value[k];
      if (has(kHasBase)) {
        real value, slope;
        elementary_silu(x, value, slope);
        shared_base[n] = value;
      }
    }
    barrier();
    // A stable sort by span: everybody counts who comes before its samples.
    for (uint n = me; n < count; n += kGroup) {
      const uint span = shared_span[n];
      uint rank = 0;
      for (uint m = 0; m < count; ++m) {
        const uint other = shared_span[m];
        rank += other < span || (other == span && m < n) ? 1 : 0;
      }
      shared_order[rank] = n;
    }
    barrier();
    if (j < out_lanes()) add_chunk(i, j, first, count, overwrite && first == 0);
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

// One block of 64 outputs: eight lanes, as two quads, then a tree over them.
real input_block(uint i, uint s, uint first, BasisPoint b, real base_slope) {
  const uint quads = out_padded() / 4, last = min(first + 64, out_lanes()) / 4, begin = first / 4;
  precise real4 low = real4(0), high = real4(0);
  const uint terms = kDegree + 1 + (has(kHasBase) ? 1 : 0);
  for (uint k = 0; k < terms; ++k) {
    const bool base_row = k > kDegree;
    const uint row = (i * layer.rows + (base_row ? layer.rows - 1 : b.span + k)) * quads;
    const real factor = base_row ? base_slope : b.slope[min(k, kDegree)];
    precise real4 a = dl_dy_quads[s * quads + begin] * parameters[row + begin];
    precise real4 c = dl_dy_quads[s * quads + begin + 1] * parameters[row + begin + 1];
    for (uint q = begin + 2; q < last; q += 2) {
      precise real4 first_term = dl_dy_quads[s * quads + q] * parameters[row + q];
      precise real4 second_term = dl_dy_quads[s * quads + q + 1] * parameters[row + q + 1];
      a = a + first_term;
      c = c + second_term;
    }
    precise real4 first_product = factor * a;
    precise real4 second_product = factor * c;
    if (k == 0) {
      low = first_product;
      high = second_product;
    } else {
      low = low + first_product;
      high = high + second_product;
    }
  }
  precise real4 four = low + high;
  precise real left = four.x + four.z;
  precise real right = four.y + four.w;
  precise real result = left + right;
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
