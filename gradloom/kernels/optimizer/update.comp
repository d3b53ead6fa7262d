// One step of SGD, Adam or AdamW on a range of parameters: gradloom/kernels/optimizer/optimizer.h. One invocation owns
// kQuads times four elements. After a loss or a norm that was not finite nothing changes.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

#include "gradloom/kernels/shader/step.glsl"

layout(constant_id = 0) const uint kKind = 3;
layout(constant_id = 1) const uint kQuads = 1;
const uint kSgd = 0, kSgdMomentum = 1, kNesterov = 2, kAdam = 3;

layout(push_constant) uniform What {
  uint quads;
  uint clipped;  // not 0: by the norm of the gradient
  // Weight decay is for these quads: [from, to).
  uint decay_from;
  uint decay_to;
} what;

layout(std430, binding = 0) buffer Parameters { real4 parameters[]; };
layout(std430, binding = 1) readonly buffer Gradient { real4 gradient[]; };
layout(std430, binding = 2) buffer First { real4 first_state[]; };    // velocity, or first moment
layout(std430, binding = 3) buffer Second { real4 second_state[]; };  // second moment
layout(std430, binding = 4) readonly buffer Batch { real batch[]; };
layout(std430, binding = 5) readonly buffer Status { uint status[]; };
layout(std430, binding = 6) readonly buffer Norm {
  uint done;
  uint not_finite;
  real squares;
} norm;

// The constants of the step, loaded once for all elements of an invocation.
struct Constants {
  real factor, limit, l2, rate, momentum, beta1, rest1, beta2, rest2, epsilon, keep, root_correction;
};

real clip_scale() {
  precise real length = sqrt(norm.squares);
  precise real limited = batch[kClipNorm] / length;
  return length > batch[kClipNorm] ? limited : real(1);
}

Constants load_constants() {
  Constants c;
  c.factor = what.clipped != 0 ? clip_scale() : batch[kGradientScale];
  c.limit = batch[kGradientLimit];
  c.l2 = batch[kL2];
  c.rate = batch[kRate];
  if (kKind == kAdam) {
    c.beta1 = batch[kBeta1];
    c.rest1 = batch[kRest1];
    c.beta2 = batch[kBeta2];
    c.rest2 = batch[kRest2];
    c.epsilon = batch[kEpsilon];
    c.keep = batch[kKeep];
    c.root_correction = batch[kRootCorrection];
  } else if (kKind != kSgd) {
    c.momentum = batch[kMomentum];
  }
  return c;
}

void update(uint n, Constants c) {
  const real4 w = parameters[n];
  precise real4 scaled = c.factor * gradient[n];
  scaled = mix(scaled, real4(-c.limit), lessThan(scaled, real4(-c.limit)));
  scaled = mix(scaled, real4(c.limit), greaterThan(scaled, real4(c.limit)));
  const bool decays = n >= what.decay_from && n < what.decay_to;
  precise real4 g = scaled;
  if (decays && c.l2 != real(0)) {
    precise real4 decay = c.l2 * w;
    g = scaled + decay;
  }
  if (kKind == kAdam) {
    precise real4 old_first = c.beta1 * first_state[n];
    precise real4 new_first = c.rest1 * g;
    precise real4 m = old_first + new_first;
    precise real4 square = g * g;
    precise real4 old_second = c.beta2 * second_state[n];
    precise real4 new_second = c.rest2 * square;
    precise real4 v = old_second + new_second;
    first_state[n] = m;
    second_state[n] = v;
    precise real4 root = c.root_correction * sqrt(v);
    precise real4 below = root + real4(c.epsilon);
    precise real4 direction = m / below;
    precise real4 change = c.rate * direction;
    precise real4 kept = (decays ? c.keep : real(1)) * w;
    precise real4 updated = kept - change;
    parameters[n] = updated;
    return;
  }
  precise real4 direction = g;
  if (kKind != kSgd) {
    precise real4 old = c.momentum * first_state[n];
    precise real4 velocity = old + g;
    first_state[n] = velocity;
    direction = velocity;
    if (kKind == kNesterov) {
      precise real4 ahead = c.momentum * velocity;
      direction = g + ahead;
    }
  }
  precise real4 change = c.rate * direction;
  precise real4 updated = w - change;
  parameters[n] = updated;
}

void main() {
  const uint first = group_number() * kGroup * kQuads + gl_LocalInvocationID.x;
  if (first >= what.quads || status[0] != 0 || (what.clipped != 0 && norm.not_finite != 0)) return;
  const Constants c = load_constants();
  [[unroll]] for (uint q = 0; q < kQuads; ++q)
    if (first + q * kGroup < what.quads) update(first + q * kGroup, c);
}
