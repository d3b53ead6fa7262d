// y of one layer for all samples: gradloom/kernels/spline/spline.h, forward. A group owns kTile * 4 outputs of
// kGroup / kTile * kSamples samples. Its invocations evaluate the basis of a few inputs together, or neighbours that share
// do so among themselves. Then each adds up four outputs of kSamples samples: rows of weights pass by, each loaded once
// for all of them, and a sample takes those of its span.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GRADLOOM_OWN_GROUP

#include "gradloom/kernels/spline/basis.glsl"

layout(constant_id = 5) const uint kTile = 16;    // invocations along the outputs, a multiple of kShare
layout(constant_id = 6) const uint kSamples = 4;  // of an invocation, a multiple of kShare

layout(std430, binding = 0) readonly buffer Parameters { real4 parameters[]; };
layout(std430, binding = 3) writeonly buffer Outputs { real4 outputs[]; };

const uint kGroupSamples = kGroup / kTile * kSamples;
const uint kInputs = kGroupSamples < 128 ? 128 / kGroupSamples : 1;  // of a round
const uint kEach = kInputs < kGroup ? kInputs : kGroup;              // that are evaluated side by side
const uint kBlocks = kSamples / kShare;
shared real shared_value[kInputs * kGroupSamples * kOrder];
shared real shared_base[kInputs * kGroupSamples];
shared uint shared_span[kInputs * kGroupSamples];

struct Point {
  uint span;
  real value[8];  // kOrder of them
  real base;
};

// Samples beyond the batch repeat its last one, and are not stored.
Point evaluate(uint s, InputGrid g) {
  const real x = input_of(min(s, layer.batch - 1), g);
  const BasisPoint b = basis_point(g, x);
  Point point;
  point.span = b.span;
  [[unroll]] for (uint k = 0; k < kOrder; ++k) point.value[k] = b.value[k];
  point.base = real(0);
  if (kHasBase) {
    real slope;
    base_point(g, x, point.base, slope);
  }
  return point;
}

// The inputs of a round, for all samples of the group.
void evaluate_round(uint first_sample, uint first) {
  const uint me = my_number(), width = kGroup / kEach;
  for (uint n = me / width; n < kInputs && first + n < layer.in_width; n += kEach) {
    const InputGrid g = grid_of(first + n);
    for (uint s = me % width; s < kGroupSamples; s += width) {
      const Point point = evaluate(first_sample + s, g);
      const uint pair = n * kGroupSamples + s;
      shared_span[pair] = point.span;
      [[unroll]] for (uint k = 0; k < kOrder; ++k) shared_value[pair * kOrder + k] = point.value[k];
      if (kHasBase) shared_base[pair] = point.base;
    }
  }
}

void main() {
  const uint quads = out_padded() / 4, blocks = (quads + kTile - 1) / kTile;
  const uint group = group_number(), first_sample = group / blocks * kGroupSamples;
  if (first_sample >= layer.batch) return;
  const uint me = my_number(), mine = me / kTile * kSamples;  // my first sample in the group
  const uint place = group % blocks * kTile + me % kTile;
  // Who has no output of its own keeps the others company: they need what it loads.
  const bool works = place * 4 < out_lanes();
  const uint quad = works ? place : 0;
  precise real4 sum[kSamples];
  const real4 bias = has(kHasBias) ? parameters[layer.bias_at / 4 + quad] : real4(0);
  [[unroll]] for (uint s = 0; s < kSamples; ++s) sum[s] = bias;
  for (uint first = 0; first < layer.in_width; first += kInputs) {
    if (kShare == 1) {
      barrier();
      evaluate_round(first_sample, first);
      barrier();
    }
    uint n = 0;
    do {
      // My share: one sample of each block.
      uint span[kBlocks], low = 0xffffffffu, high = 0;
      real value[kBlocks][kOrder], base[kBlocks];
      InputGrid g;
      if (kShare > 1) g = grid_of(first + n);
      [[unroll]] for (uint block = 0; block < kBlocks; ++block) {
        const uint s = mine + block * kShare + my_share();
        if (kShare > 1) {
          const Point point = evaluate(first_sample + s, g);
          span[block] = point.span;
          [[unroll]] for (uint k = 0; k < kOrder; ++k) value[block][k] = point.value[k];
          base[block] = point.base;
        } else {
          const uint pair = n * kGroupSamples + s;
          span[block] = shared_span[pair];
          [[unroll]] for (uint k = 0; k < kOrder; ++k) value[block][k] = shared_value[pair * kOrder + k];
          base[block] = kHasBase ? shared_base[pair] : real(0);
        }
        low = min(low, span[block]);
        high = max(high, span[block]);
      }
      const uint first_row = (first + n) * layer.rows, last = greatest(high) + kDegree;
      uint row = least(low);
      do {
        const real4 weight = parameters[(first_row + row) * quads + quad];
        [[unroll]] for (uint block = 0; block < kBlocks; ++block) {
          const uint k = row - span[block];
          const real share = pick(value[block], k);
          [[unroll]] for (uint m = 0; m < kShare; ++m) {
            const bool reaches = from(k, m) < kOrder;
            if (kShare > 1 || reaches) {
              precise real4 more = mul_add(from(share, m), weight, sum[block * kShare + m]);
              sum[block * kShare + m] = reaches ? more : sum[block * kShare + m];
            }
          }
        }
      } while (++row <= last);
      if (kHasBase) {
        const real4 weight = parameters[(first_row + layer.rows - 1) * quads + quad];
        [[unroll]] for (uint s = 0; s < kSamples; ++s) sum[s] = mul_add(from(base[s / kShare], s % kShare), weight, sum[s]);
      }
    } while (++n < min(kInputs, layer.in_width - first));
  }
  [[unroll]] for (uint s = 0; s < kSamples; ++s) {
    const uint at = first_sample + mine + s;
    if (at < layer.batch && place < quads) outputs[at * quads + place] = works ? sum[s] : real4(0);
  }
}
