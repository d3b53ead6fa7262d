// y of one layer for all samples: gradloom/kernels/spline/spline.h, forward. A group owns kTile * 4 outputs of
// 64 / kTile * kSamples samples; its invocations evaluate the basis of a few inputs together. Then each adds them up for
// four outputs of kSamples samples: rows of weights pass by in registers, each loaded once for all of them, and a sample
// adds its terms when the rows of its span are there.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/spline/basis.glsl"

layout(constant_id = 1) const uint kTile = 16;    // invocations along the outputs
layout(constant_id = 2) const uint kSamples = 4;  // of an invocation; 64 / kTile * kSamples is at most 128

layout(std430, binding = 0) readonly buffer Parameters { real4 parameters[]; };
layout(std430, binding = 3) writeonly buffer Outputs { real4 outputs[]; };

const uint kPairs = 128;  // of a sample and an input, at a time
const uint kOrder = kDegree + 1, kNowhere = 0xffffffffu;
shared real shared_value[kPairs * kOrder];
shared real shared_base[kPairs];
shared uint shared_span[kPairs];

void evaluate(uint pair, uint s, uint i) {
  const real x = input_of(s, i);
  const BasisPoint b = basis_point(i, x);
  shared_span[pair] = b.span;
  for (uint k = 0; k < kOrder; ++k) shared_value[pair * kOrder + k] = b.value[k];
  if (has(kHasBase)) {
    real value, slope;
    elementary_silu(x, value, slope);
    shared_base[pair] = value;
  }
}

void main() {
  const uint samples = kGroup / kTile * kSamples, inputs = kPairs / samples;  // of the group, of a round
  const uint quads = out_padded() / 4, blocks = (quads + kTile - 1) / kTile;
  const uint group = group_number(), first_sample = group / blocks * samples;
  if (first_sample >= layer.batch) return;
  const uint me = gl_LocalInvocationID.x, mine = me / kTile * kSamples;  // my first sample in the group
  const uint quad = group % blocks * kTile + me % kTile;
  const bool works = quad * 4 < out_lanes();
  precise real4 sum[kSamples];
  for (uint s = 0; s < kSamples; ++s) sum[s] = real4(0);
  if (works && has(kHasBias)) {
    const real4 bias = parameters[layer.bias_at / 4 + quad];
    for (uint s = 0; s < kSamples; ++s) sum[s] = bias;
  }
  for (uint first = 0; first < layer.in_width; first += inputs) {
    barrier();
    for (uint pair = me; pair < kPairs; pair += kGroup) {
      const uint s = first_sample + pair % samples, i = first + pair / samples;
      if (s < layer.batch && i < layer.in_width)
        evaluate(pair, s, i);
      else
        shared_span[pair] = kNowhere;
    }
    barrier();
    if (!works) continue;
    for (uint n = 0; n < min(inputs, layer.in_width - first); ++n) {
      const uint pair = n * samples + mine, row = (first + n) * layer.rows;
      uint span[kSamples], low = kNowhere, high = 0;
      real value[kSamples * kOrder];
      for (uint s = 0; s < kSamples; ++s) {
        span[s] = shared_span[pair + s];
        low = min(low, span[s]);
        if (span[s] != kNowhere) high = max(high, span[s]);
        for (uint k = 0; k < kOrder; ++k) value[s * kOrder + k] = shared_value[(pair + s) * kOrder + k];
      }
      if (low == kNowhere) continue;
      real4 weight[kOrder];
      for (uint k = 1; k < kOrder; ++k) weight[k] = parameters[(row + low + k - 1) * quads + quad];
      for (uint now = low; now <= high; ++now) {
        for (uint k = 0; k < kDegree; ++k) weight[k] = weight[k + 1];
        weight[kDegree] = parameters[(row + now + kDegree) * quads + quad];
        for (uint s = 0; s < kSamples; ++s) {
          if (span[s] == now) {
            for (uint k = 0; k < kOrder; ++k) {
              precise real4 term = value[s * kOrder + k] * weight[k];
              sum[s] = sum[s] + term;
            }
          }
        }
      }
      if (!has(kHasBase)) continue;
      const real4 base_weight = parameters[(row + layer.rows - 1) * quads + quad];
      for (uint s = 0; s < kSamples; ++s) {
        precise real4 term = shared_base[pair + s] * base_weight;
        sum[s] = sum[s] + term;
      }
    }
  }
  for (uint s = 0; s < kSamples; ++s) {
    const uint at = first_sample + mine + s;
    if (at < layer.batch && quad < quads) outputs[at * quads + quad] = sum[s];
  }
}
