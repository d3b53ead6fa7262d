// The SIMD versions of the gate kernels: the same bits as reference.h on every instruction set.
#pragma once

#include "gradloom/kernels/gate/gate.h"

namespace gradloom::kernels::gate::fast {

#define GRADLOOM_DECLARE(T)                                                                                       \
  void coefficients(std::span<const T> logits, Gate<T>* gates, std::size_t stride);                               \
  void logit_gradient(std::span<const T> logits, const T* sums, std::size_t stride, GradientMode mode, T* dl_dz); \
  void forward(std::span<const Gate<T>> gates, const T* in, T* out, const Copies& copies);                        \
  void backward(std::span<const Gate<T>> gates, const LayerGradient<T>& arrays);
GRADLOOM_DECLARE(float)
GRADLOOM_DECLARE(double)
#undef GRADLOOM_DECLARE

}  // namespace gradloom::kernels::gate::fast
