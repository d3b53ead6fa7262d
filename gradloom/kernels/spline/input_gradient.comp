// dl_dx of one layer: gradloom/kernels/spline/spline.h, input_gradient. A group owns layer.tile inputs of kGroup * kSamples
// samples. An invocation keeps dl_dy of its samples for a block of outputs; rows of weights, or their differences, pass
// by, and a sample takes those of its span.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GRADLOOM_OWN_GROUP

#include "gradloom/kernels/spline/basis.glsl"

layout(constant_id = 5) const uint kSamples = 1;  // of an invocation, at most kMostSamples
layout(constant_id = 6) const uint kSteps = 4;    // of 16 outputs in a block
layout(constant_id = 7) const bool kCut = false;  // the last block has fewer

layout(std430, binding = 0) readonly buffer Parameters { real parameters[]; };
layout(std430, binding = 0) readonly buffer ParameterQuads { real4 parameter_quads[]; };
layout(std430, binding = 3) readonly buffer Above { real4 dl_dy[]; };
layout(std430, binding = 4) buffer Below { real dl_dx[]; };

const uint kLanes = 16;  // sums of a block that grow side by side; unrolled by the driver: glslc's copies would lose `precise`
const uint kMostSamples = 4;
real d[kMostSamples * 4 * kLanes];

// Sixteen weights of one row, from element `at` on; with `subtract` those of the next row minus these.
void load_weights(uint at, bool subtract, out real weight[kLanes]) {
  if (kShare == 1) {
    for (uint q = 0; q < kLanes / 4; ++q) {  // by the driver, too
      precise real4 four = parameter_quads[at / 4 + q];
      if (subtract) four = parameter_quads[(at + out_padded()) / 4 + q] - four;
      [[unroll]] for (uint part = 0; part < 4; ++part) weight[q * 4 + part] = four[part];
    }
  } else {
    real mine[kLanes];
    [[unroll]] for (uint part = 0; part < kLanes / kShare; ++part) {
      const uint mine_at = at + part * kShare + my_share();
      precise real own = parameters[mine_at];
      if (subtract) own = parameters[mine_at + out_padded()] - own;
      mine[part] = own;
    }
    for (uint l = 0; l < kLanes; ++l) weight[l] = from(mine[l / kShare], l % kShare);
  }
}

// lane_sum = dl_dy times the row that starts at element `at`, or times its difference from the next one, by lane; of the
// block's first `steps` steps.
void multiply_row(uint at, bool subtract, uint steps, inout real lane_sum[kMostSamples * kLanes]) {
  [[unroll]] for (uint step = 0; step < kSteps; ++step) {
    const bool exists = !kCut || step < steps;
    if (kShare > 1 || exists) {
      real weight[kLanes];
      load_weights(exists ? at + step * kLanes : at, subtract, weight);
      [[unroll]] for (uint v = 0; v < kSamples; ++v)
        for (uint l = 0; l < kLanes; ++l) {
          precise real term = d[(v * kSteps + step) * kLanes + l] * weight[l];
          precise real more = mul_add(d[(v * kSteps + step) * kLanes + l], weight[l], lane_sum[v * kLanes + l]);
          lane_sum[v * kLanes + l] = step == 0 ? term : (exists ? more : lane_sum[v * kLanes + l]);
        }
    }
  }
}

real tree(real t[kLanes]) {
  real lane[kLanes] = t;
  for (uint half_count = kLanes / 2; half_count > 0; half_count /= 2)
    for (uint l = 0; l < half_count; ++l) {
      precise real both = lane[l] + lane[l + half_count];
      lane[l] = both;
    }
  return lane[0];
}

void one_input(uint i, uint first_sample, uint first, uint steps) {
  const uint out_p = out_padded();
  const InputGrid g = grid_of(i);
  uint span[kSamples], low = 0xffffffffu, high = 0;
  real slope[kSamples][kOrder], base_slope[kSamples];
  [[unroll]] for (uint v = 0; v < kSamples; ++v) {
    const real x = input_of(min(first_sample + v * kGroup, layer.batch - 1), g);
    const BasisPoint b = basis_point(g, x);
    span[v] = b.span;
    low = min(low, b.span);
    high = max(high, b.span);
    [[unroll]] for (uint k = 0; k < kOrder; ++k) slope[v][k] = b.slope[k];
    base_slope[v] = real(0);
    if (kHasBase) {
      real value;
      base_point(g, x, value, base_slope[v]);
    }
  }
  precise real t[kSamples][kLanes];
  [[unroll]] for (uint v = 0; v < kSamples; ++v) for (uint l = 0; l < kLanes; ++l) t[v][l] = real(0);
  real lane_sum[kMostSamples * kLanes];
  const uint last = greatest(high) + kSlopes - 1;
  uint row = least(low);
  [[dont_unroll]] do {
    multiply_row((i * layer.rows + row) * out_p + first, kRowDifferences, steps, lane_sum);
    [[unroll]] for (uint v = 0; v < kSamples; ++v) {
      const uint k = row - span[v];
      const real rises = pick(slope[v], k);
      for (uint l = 0; l < kLanes; ++l) {
        precise real product = rises * lane_sum[v * kLanes + l];
        precise real more = mul_add(rises, lane_sum[v * kLanes + l], t[v][l]);
        t[v][l] = k == 0 ? product : (k < kSlopes ? more : t[v][l]);
      }
    }
  } while (++row <= last);
  if (kHasBase) {
    multiply_row((i * layer.rows + layer.rows - 1) * out_p + first, false, steps, lane_sum);
    [[unroll]] for (uint v = 0; v < kSamples; ++v)
      for (uint l = 0; l < kLanes; ++l) t[v][l] = mul_add(base_slope[v], lane_sum[v * kLanes + l], t[v][l]);
  }
  [[unroll]] for (uint v = 0; v < kSamples; ++v) {
    const uint s = first_sample + v * kGroup;
    precise real result = tree(t[v]);
    if (s < layer.batch) {
      if (first > 0) result = dl_dx[s * layer.below_stride + i] + result;
      if (has(kNormalise) && first + 64 >= layer.out_width) result = result * g.scale;
      dl_dx[s * layer.below_stride + i] = result;
    }
  }
}

void main() {
  const uint blocks = (layer.batch + kGroup * kSamples - 1) / (kGroup * kSamples), group = group_number();
  const uint first_input = group / blocks * layer.tile;
  const uint first_sample = group % blocks * kGroup * kSamples + my_number(), quads = out_padded() / 4;
  if (first_input >= layer.below_stride) return;
  const uint last = min(first_input + layer.tile, layer.in_width);
  for (uint first = 0; first < layer.out_width; first += 64) {
    const uint steps = min(4, (out_padded() - first) / kLanes);
    [[unroll]] for (uint v = 0; v < kSamples; ++v) {
      const uint from_quad = min(first_sample + v * kGroup, layer.batch - 1) * quads + first / 4;
      [[unroll]] for (uint q = 0; q < kSteps * kLanes / 4; ++q) {
        const real4 four = dl_dy[from_quad + (kCut ? min(q, kLanes / 4 * steps - 1) : q)];
        [[unroll]] for (uint part = 0; part < 4; ++part) d[v * kSteps * kLanes + q * 4 + part] = four[part];
      }
    }
    for (uint i = first_input; i < last; ++i) one_input(i, first_sample, first, steps);
  }
  // Padding of the layer below.
  for (uint i = max(first_input, layer.in_width); i < min(first_input + layer.tile, layer.below_stride); ++i)
    [[unroll]] for (uint v = 0; v < kSamples; ++v)
      if (first_sample + v * kGroup < layer.batch) dl_dx[(first_sample + v * kGroup) * layer.below_stride + i] = real(0);
}
