// y of one layer for all samples: gradloom/kernels/spline/spline.h, forward. A group owns kRows samples and kTile * 4
// outputs; its invocations evaluate the basis of a few inputs together, then each adds them up for four outputs.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/spline/basis.glsl"

layout(constant_id = 1) const uint kTile = 16;  // invocations along the outputs

layout(std430, binding = 0) readonly buffer Parameters { real4 parameters[]; };
layout(std430, binding = 3) writeonly buffer Outputs { real4 outputs[]; };

shared real shared_value[64 * 8];
shared real shared_base[64];
shared uint shared_span[64];

void main() {
  const uint rows_of_group = kGroup / kTile, inputs_of_round = kTile;
  const uint quads = out_padded() / 4;
  const uint blocks = (quads + kTile - 1) / kTile;
  const uint group = group_number();
  const uint first_sample = group / blocks * rows_of_group;
  if (first_sample >= layer.batch) return;
  const uint me = gl_LocalInvocationID.x;
  const uint s = first_sample + me / kTile, quad = group % blocks * kTile + me % kTile;
  const bool mine = s < layer.batch && quad * 4 < out_lanes();
  precise real4 sum = real4(0);
  if (mine && has(kHasBias)) sum = parameters[layer.bias_at / 4 + quad];
  const uint pair_sample = first_sample + me / inputs_of_round, pair_input = me % inputs_of_round;
  for (uint first = 0; first < layer.in_width; first += inputs_of_round) {
    barrier();
    if (pair_sample < layer.batch && first + pair_input < layer.in_width) {
      const real x = input_of(pair_sample, first + pair_input);
      const BasisPoint b = basis_point(first + pair_input, x);
      shared_span[me] = b.span;
      for (uint k = 0; k <= kDegree; ++k) shared_value[me * 8 + k] = b.value[k];
      if (has(kHasBase)) {
        real value, slope;
        elementary_silu(x, value, slope);
        shared_base[me] = value;
      }
    }
    barrier();
    if (!mine) continue;
    const uint count = min(inputs_of_round, layer.in_width - first);
    for (uint n = 0; n < count; ++n) {
      const uint pair = me / kTile * inputs_of_round + n;
      const uint row = (first + n) * layer.rows;
      const uint at = (row + shared_span[pair]) * quads + quad;
      for (uint k = 0; k <= kDegree; ++k) {
        precise real4 term = shared_value[pair * 8 + k] * parameters[at + k * quads];
        sum = sum + term;
      }
      if (has(kHasBase)) {
        precise real4 term = shared_base[pair] * parameters[(row + layer.rows - 1) * quads + quad];
        sum = sum + term;
      }
    }
  }
  if (s < layer.batch && quad < quads) outputs[s * quads + quad] = sum;
}
