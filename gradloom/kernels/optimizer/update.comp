// One step of an optimizer on a range of parameters: gradloom/kernels/optimizer/optimizer.h. One invocation owns kQuads
// times four elements. After a loss or a norm that was not finite nothing changes.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

#include "gradloom/kernels/shader/exact.glsl"
#include "gradloom/kernels/shader/real.glsl"

layout(constant_id = 0) const uint kRule = 3;  // of rule_list.inc
layout(constant_id = 1) const uint kQuads = 1;

layout(push_constant) uniform What {
#include "gradloom/kernels/optimizer/push.inc"
} what;

layout(std430, binding = 0) buffer Parameters { real4 parameters[]; };
layout(std430, binding = 1) readonly buffer Gradient { real4 gradient[]; };
layout(std430, binding = 2) buffer First { real4 first_state[]; };
layout(std430, binding = 3) buffer Second { real4 second_state[]; };
layout(std430, binding = 4) readonly buffer Batch { real batch[]; };
layout(std430, binding = 5) readonly buffer Status { uint status[]; };
layout(std430, binding = 6) readonly buffer Norm {
  uint done;
  uint not_finite;
  real squares;
} norm;

#include "gradloom/kernels/shader/step.glsl"

// GLSL's own says nothing of NaN and -0.
#define sign rule_sign
real4 rule_sign(real4 a) {
  return mix(mix(real4(0), real4(-1), lessThan(a, real4(0))), real4(1), greaterThan(a, real4(0)));
}

#define sqrt rule_sqrt
real4 rule_sqrt(real4 a) { return real4(exact_sqrt(a.x), exact_sqrt(a.y), exact_sqrt(a.z), exact_sqrt(a.w)); }
#define GRADLOOM_DIVIDE rule_divide
real4 rule_divide(real4 a, real4 b) {
  return real4(exact_divide(a.x, b.x), exact_divide(a.y, b.y), exact_divide(a.z, b.z), exact_divide(a.w, b.w));
}

// The functions of the rules, of c, g, w, m and v. Every operation that an output comes from is precise.
#define GRADLOOM_RULE_BODY(name) \
  void name##_rule(StepScalars c, real4 g, inout precise real4 w, inout precise real4 m, inout precise real4 v)
#include "gradloom/kernels/optimizer/rules.inc"

// The scale of the gradient that clips its norm.
real clip_scale(real limit) {
  const real length = exact_sqrt(norm.squares);
  return length > limit ? exact_divide(limit, length) : real(1);
}

void update(uint n, StepScalars c) {
  const bool decays = n >= what.decay_from && n < what.decay_to;
  precise real4 w = parameters[n];
  precise real4 scaled = c.gradient_scale * gradient[n];
  scaled = mix(scaled, real4(-c.gradient_limit), lessThan(scaled, real4(-c.gradient_limit)));
  scaled = mix(scaled, real4(c.gradient_limit), greaterThan(scaled, real4(c.gradient_limit)));
  precise real4 g = scaled;
  if (decays && c.l2 != real(0)) g = mul_add(c.l2, w, scaled);
  if (decays) w = c.keep * w;
  precise real4 m = real4(0), v = real4(0);
#define GRADLOOM_RULE(number, name, states, first, second) \
  if (kRule == number) {                                   \
    if (states > 0) m = first_state[n];                    \
    if (states > 1) v = second_state[n];                   \
    name##_rule(c, g, w, m, v);                            \
    if (states > 0) first_state[n] = m;                    \
    if (states > 1) second_state[n] = v;                   \
  }
#include "gradloom/kernels/optimizer/rule_list.inc"
  parameters[n] = w;
}

void main() {
  const uint first = group_number() * kGroup * kQuads + gl_LocalInvocationID.x;
  if (first >= what.quads || status[0] != 0 || (what.clipped != 0 && norm.not_finite != 0)) return;
  StepScalars c = load_step();
  if (what.clipped != 0) c.gradient_scale = clip_scale(c.clip_norm);
  [[unroll]] for (uint q = 0; q < kQuads; ++q)
    if (first + q * kGroup < what.quads) update(first + q * kGroup, c);
}
