// The SIMD versions of the spline kernels: the same bits as reference.h on every instruction set.
#pragma once

#include "gradloom/kernels/spline/spline.h"

namespace gradloom::kernels::spline::fast {

#define GRADLOOM_DECLARE(T)                                                                                           \
  std::size_t evaluate_basis(const Layer<T>& layer, const LayerTape<T>& tape, Range samples);                         \
  void forward(const Layer<T>& layer, const LayerTape<T>& tape, Range samples, T* y);                                 \
  void input_gradient(const Layer<T>& layer, const LayerTape<T>& tape, const T* dl_dy, Range samples, T* dl_dx);      \
  void weight_gradient(const Shape& shape, const LayerTape<T>& tape, const T* dl_dy, Range inputs, GradientMode mode, \
                       T* dl_dw, InputHook each);                                                                     \
  void bias_gradient(const Shape& shape, SampleExtent batch, const T* dl_dy, GradientMode mode, T* dl_db);            \
  void forward_single(const Layer<T>& layer, const T* x, T* y);
GRADLOOM_DECLARE(float)
GRADLOOM_DECLARE(double)
#undef GRADLOOM_DECLARE

}  // namespace gradloom::kernels::spline::fast
