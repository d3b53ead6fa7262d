// The SIMD versions of the gate kernels: the same bits as reference.h on every instruction set.
#pragma once

#include "gradloom/kernels/gate/gate.h"
#include "gradloom/kernels/gate/patch.h"

namespace gradloom::kernels::gate::fast {

#define GRADLOOM_DECLARE(T)                                                                                           \
  void coefficients(std::span<const T> logits, const std::uint32_t* position, std::size_t stride, Gate<T>* gates);    \
  void logit_gradient(std::span<const T> logits, const std::uint32_t* position, std::size_t stride, const T* sums,    \
                      GradientMode mode, T* dl_dz);                                                                   \
  void forward(const Layer<T>& layer, const T* in, T* out, const Copies& copies);                                     \
  void backward(const Layer<T>& layer, const LayerGradient<T>& arrays);                                               \
  /* Room for L numbers behind the rows, which are overwritten. */                                                    \
  void read_rows(const GridShape& grid, const TileCells& cells, std::span<const std::size_t> offsets, const T* state, \
                 T* rows);
GRADLOOM_DECLARE(float)
GRADLOOM_DECLARE(double)
#undef GRADLOOM_DECLARE

}  // namespace gradloom::kernels::gate::fast
