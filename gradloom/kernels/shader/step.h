// What a step tells the device besides its samples: the head of the batch that is copied there.
#pragma once

#include <cstddef>

namespace gradloom::kernels {

// Bytes [0, 256): 64 whole numbers, of which the first says which pair of the losses is the first of
// this step. Bytes [256, 512): scalars.
inline constexpr std::size_t kStepScalarsAt = 256, kStepHeadBytes = 512;

enum class StepScalar : std::size_t {
  loss_factor,
  huber_delta,
  gradient_scale,
  gradient_limit,
  l2,
  rate,
  momentum,
  beta1,
  one_minus_beta1,
  beta2,
  one_minus_beta2,
  epsilon,
  keep,
  root_correction,
  clip_norm,
};

}  // namespace gradloom::kernels
