// The definition of the updates, one element at a time. See optimizer.h for contracts.
#pragma once

#include <cmath>

#include "gradloom/kernels/optimizer/optimizer.h"

namespace gradloom::kernels::reference {

template <class T>
T prepare_gradient(const GradientOptions<T>& o, T g, T w) {
  g = o.scale * g;
  g = g < -o.limit ? -o.limit : g;
  g = g > o.limit ? o.limit : g;
  return o.l2 == T(0) ? g : g + o.l2 * w;
}

template <class T>
void sgd_element(const SgdStep<T>& step, T& w, T gradient, T* velocity) {
  const T g = prepare_gradient(step.gradient, gradient, w);
  T direction = g;
  if (velocity) {
    *velocity = step.momentum * *velocity + g;
    direction = step.nesterov ? g + step.momentum * *velocity : *velocity;
  }
  w = w - step.rate * direction;
}

template <class T>
void adam_element(const AdamStep<T>& step, T& w, T gradient, T& m, T& v) {
  const T g = prepare_gradient(step.gradient, gradient, w);
  m = step.beta1 * m + step.one_minus_beta1 * g;
  v = step.beta2 * v + step.one_minus_beta2 * (g * g);
  w = step.keep * w - step.rate * (m / (step.root_correction * std::sqrt(v) + step.epsilon));
}

}  // namespace gradloom::kernels::reference
