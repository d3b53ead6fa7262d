// One step of an optimizer on a flat range of parameters. Element by element, so any split into ranges gives the same
// bits.
//
// Every update first prepares the gradient: g = scale * g; then g = -limit below -limit, limit above limit; then
// g = g + l2 * w, unless l2 is 0. `gradient` is read only. Ranges have equal sizes, may be empty and need no alignment;
// they do not overlap. sqrt and / are the correctly rounded ones; nothing is contracted. Elements that are zero with a
// zero gradient and state (padding) stay zero.
#pragma once

#include <limits>
#include <span>

#include "gradloom/exec/exec.h"

namespace gradloom::kernels {

template <class T>
struct GradientOptions {
  T scale = 1;                                   // of norm clipping, or 1 / (accumulated batches)
  T limit = std::numeric_limits<T>::infinity();  // element-wise clipping
  T l2 = 0;                                      // coupled weight decay
};

// v = momentum * v + g;  w = w - rate * v, or with nesterov w = w - rate * (g + momentum * v).
// Without momentum, `velocity` is empty and w = w - rate * g.
template <class T>
struct SgdStep {
  GradientOptions<T> gradient;
  T rate = 0;
  T momentum = 0;
  bool nesterov = false;
};

template <class T>
void sgd_update(Variant variant, const SgdStep<T>& step, std::span<T> parameters, std::span<const T> gradient,
                std::span<T> velocity);

// m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * (g * g);
// w = keep * w - rate * (m / (root_correction * sqrt(v) + epsilon)).
template <class T>
struct AdamStep {
  GradientOptions<T> gradient;
  T rate = 0;             // learning rate / (1 - beta1^t)
  T root_correction = 1;  // 1 / sqrt(1 - beta2^t)
  T beta1 = 0, one_minus_beta1 = 1;
  T beta2 = 0, one_minus_beta2 = 1;
  T epsilon = 0;
  T keep = 1;  // 1 - learning rate * decay: the decoupled weight decay of AdamW
};

// The constants of step t = 1, 2, ... computed in double.
template <class T>
AdamStep<T> adam_step(double learning_rate, double beta1, double beta2, double epsilon, double decoupled_decay,
                      unsigned long t, const GradientOptions<T>& gradient = {});

template <class T>
void adam_update(Variant variant, const AdamStep<T>& step, std::span<T> parameters, std::span<const T> gradient,
                 std::span<T> first_moment, std::span<T> second_moment);

}  // namespace gradloom::kernels
