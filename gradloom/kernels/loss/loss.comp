// The loss of a batch and its gradient with respect to the last layer (gradloom/kernels/loss/reference.h); or the network's output
// alone; or a gradient that is given. One invocation owns a sample, a group the partial sum of 64.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/elementary/elementary.glsl"

layout(push_constant) uniform What {
#include "gradloom/kernels/loss/push.inc"
} what;

#define GRADLOOM_LOSS(number, name) const uint k_##name = number;
#define GRADLOOM_LOSS_RESULT(number, name) const uint k_result_##name = number;
#include "gradloom/kernels/loss/kinds.inc"

layout(std430, binding = 0) readonly buffer Last { real last[]; };  // (B, OutP), before the output's scale
layout(std430, binding = 1) readonly buffer Buffers { real buffers[]; };
layout(std430, binding = 2) readonly buffer Batch { real batch[]; };
layout(std430, binding = 3) readonly buffer BatchNumbers { uint numbers[]; };
layout(std430, binding = 4) writeonly buffer Result { real result[]; };  // (B, result_stride)
layout(std430, binding = 5) writeonly buffer Losses { real losses[]; };  // pairs: sum and its remainder
layout(std430, binding = 6) buffer Status { uint status[]; };            // [0] is not 0 after a loss that is not finite

#include "gradloom/kernels/shader/step.glsl"

shared real shared_sum[64];
shared real shared_rest[64];

uint out_padded() { return (what.out_width + 15) / 16 * 16; }

real y_of(uint s, uint j) {
  precise real scaled = buffers[what.std_at + j] * last[s * out_padded() + j];
  precise real y = buffers[what.mean_at + j] + scaled;
  return y;
}

// sum + rest = sum + rest + term, with twice the digits of the scalar.
void add_term(inout real sum, inout real rest, real term) {
  precise real total = sum + term;
  precise real part = total - sum;
  precise real behind = total - part;
  precise real first_error = sum - behind;
  precise real second_error = term - part;
  precise real error = first_error + second_error;
  precise real all = rest + error;
  sum = total;
  rest = all;
}

void element_term(real y, real t, out real value, out real slope) {
  precise real e = y - t;
  precise real v = real(0);
  precise real d = real(0);
  if (what.kind == k_mse) {
    v = e * e;
    d = e + e;
  } else if (what.kind == k_mae) {
    v = abs(e);
    d = e > real(0) ? real(1) : (e < real(0) ? real(-1) : real(0));
  } else if (what.kind == k_huber) {
    const real delta = load_step().huber_delta, a = abs(e);
    if (a <= delta) {
      precise real square = e * e;
      v = square * real(0.5);
      d = e;
    } else {
      precise real beyond = neg_mul_add(delta, real(0.5), a);
      v = delta * beyond;
      d = e > real(0) ? delta : -delta;
    }
  } else {
    const real positive = y > real(0) ? y : real(0);
    precise real linear = neg_mul_add(t, y, positive);
    v = linear + elementary_log1p(elementary_exp(-abs(y)));
    d = elementary_sigmoid(y) - t;
  }
  value = v;
  slope = d;
}

real cross_entropy(uint s, real weight) {
  real top = y_of(s, 0);
  for (uint j = 1; j < what.out_width; ++j) {
    const real y = y_of(s, j);
    if (top < y) top = y;
  }
  precise real sum = real(0);
  for (uint j = 0; j < what.out_width; ++j) {
    precise real shifted = y_of(s, j) - top;
    sum = sum + elementary_exp(shifted);
  }
  const uint label = numbers[what.label_at + s];
  precise real inverse = exact_divide(real(1), sum);
  precise real factor = weight * load_step().loss_factor;
  for (uint j = 0; j < what.out_width; ++j) {
    precise real shifted = y_of(s, j) - top;
    precise real share = elementary_exp(shifted) * inverse;
    precise real difference = share - (j == label ? real(1) : real(0));
    precise real dl_dy = difference * factor;
    precise real dl_dv = dl_dy * buffers[what.std_at + j];
    result[s * what.result_stride + j] = dl_dv;
  }
  precise real shifted = elementary_log(sum) + top;
  precise real value = shifted - y_of(s, label);
  precise real weighted = weight * value;
  return weighted;
}

void sample_loss(uint s, inout real sum, inout real rest) {
  const real weight = what.weight_at != 0 ? batch[what.weight_at + s] : real(1);
  if (what.kind == k_cross_entropy) {
    if (weight == real(0))
      for (uint j = 0; j < what.out_width; ++j) result[s * what.result_stride + j] = real(0);
    else
      add_term(sum, rest, cross_entropy(s, weight));
    return;
  }
  for (uint j = 0; j < what.out_width; ++j) {
    const uint at = s * what.out_width + j;
    const real t = what.target_at != 0 ? batch[what.target_at + at] : real(numbers[what.label_at + s]);
    precise real w = weight;
    if (what.mask_at != 0) w = w * batch[what.mask_at + at];
    real value, slope;
    element_term(y_of(s, j), t, value, slope);
    precise real weighted = w * value;
    add_term(sum, rest, weighted);
    precise real factor = w * load_step().loss_factor;
    precise real dl_dy = factor * slope;
    precise real dl_dv = dl_dy * buffers[what.std_at + j];
    result[s * what.result_stride + j] = dl_dv;
  }
}

void main() {
  const uint group = group_number(), me = gl_LocalInvocationID.x, s = group * kGroup + me;
  real sum = real(0), rest = real(0);
  if (s < what.batch) {
    if (what.result_kind == k_result_output) {
      for (uint j = 0; j < what.out_width; ++j) result[s * what.result_stride + j] = y_of(s, j);
    } else if (what.result_kind == k_result_given) {
      for (uint j = 0; j < what.out_width; ++j) {
        precise real dl_dv = batch[what.target_at + s * what.out_width + j] * buffers[what.std_at + j];
        result[s * what.result_stride + j] = dl_dv;
      }
    } else {
      sample_loss(s, sum, rest);
    }
    if (what.result_kind != k_result_output)
      for (uint j = what.out_width; j < what.result_stride; ++j) result[s * what.result_stride + j] = real(0);
  }
  if (what.result_kind == k_result_output || what.result_kind == k_result_given) return;
  shared_sum[me] = sum;
  shared_rest[me] = rest;
  for (uint half_count = kGroup / 2; half_count > 0; half_count /= 2) {
    barrier();
    if (me < half_count) {
      real total = shared_sum[me], remainder = shared_rest[me];
      add_term(total, remainder, shared_sum[me + half_count]);
      precise real all = remainder + shared_rest[me + half_count];
      shared_sum[me] = total;
      shared_rest[me] = all;
    }
  }
  if (me != 0 || group >= what.groups) return;
  const uint slot = (numbers[0] + group) * 2;
  losses[slot] = shared_sum[0];
  losses[slot + 1] = shared_rest[0];
  if (!is_finite(shared_sum[0])) atomicOr(status[0], 1u);
}
