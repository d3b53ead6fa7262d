// One step of SGD, Adam or AdamW on a range of parameters: gradloom/kernels/optimizer/optimizer.h. One invocation owns an
// element. After a loss that was not finite nothing changes.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/shader/step.glsl"

layout(push_constant) uniform What {
  uint count;
  uint kind;
  uint clipped;  // not 0: the scale of norm clipping is in `scale`
  uint decays;   // 0: weight decay is not for this range
} what;

const uint kSgd = 0, kSgdMomentum = 1, kNesterov = 2, kAdam = 3;

layout(std430, binding = 0) buffer Parameters { real parameters[]; };
layout(std430, binding = 1) readonly buffer Gradient { real gradient[]; };
layout(std430, binding = 2) buffer First { real first_state[]; };    // velocity, or first moment
layout(std430, binding = 3) buffer Second { real second_state[]; };  // second moment
layout(std430, binding = 4) readonly buffer Batch { real batch[]; };
layout(std430, binding = 5) readonly buffer Status { uint status[]; };
layout(std430, binding = 6) readonly buffer Scale { real scale[]; };

void main() {
  const uint n = group_number() * kGroup + gl_LocalInvocationID.x;
  if (n >= what.count || status[0] != 0) return;
  const real w = parameters[n];
  const real factor = what.clipped != 0 ? scale[0] : batch[kGradientScale];
  precise real scaled = factor * gradient[n];
  const real limit = batch[kGradientLimit];
  if (scaled < -limit) scaled = -limit;
  if (scaled > limit) scaled = limit;
  precise real decay = (what.decays != 0 ? batch[kL2] : real(0)) * w;
  precise real g = scaled + decay;
  if (what.kind == kAdam) {
    precise real old_first = batch[kBeta1] * first_state[n];
    precise real new_first = batch[kRest1] * g;
    precise real m = old_first + new_first;
    precise real square = g * g;
    precise real old_second = batch[kBeta2] * second_state[n];
    precise real new_second = batch[kRest2] * square;
    precise real v = old_second + new_second;
    first_state[n] = m;
    second_state[n] = v;
    precise real root = batch[kRootCorrection] * sqrt(v);
    precise real below = root + batch[kEpsilon];
    precise real direction = m / below;
    precise real change = batch[kRate] * direction;
    precise real kept = (what.decays != 0 ? batch[kKeep] : real(1)) * w;
    precise real updated = kept - change;
    parameters[n] = updated;
    return;
  }
  precise real direction = g;
  if (what.kind != kSgd) {
    precise real old = batch[kMomentum] * first_state[n];
    precise real velocity = old + g;
    first_state[n] = velocity;
    direction = velocity;
    if (what.kind == kNesterov) {
      precise real ahead = batch[kMomentum] * velocity;
      direction = g + ahead;
    }
  }
  precise real change = batch[kRate] * direction;
  precise real updated = w - change;
  parameters[n] = updated;
}
