#include "gradloom/kernels/spline/spline.h"

#include "gradloom/kernels/spline/fast.h"
#include "gradloom/kernels/spline/reference.h"

namespace gradloom::kernels::spline {

template <class T>
std::size_t evaluate_basis(Variant variant, const Layer<T>& layer, const LayerTape<T>& tape, Range samples) {
  if (variant == Variant::fast) return fast::evaluate_basis(layer, tape, samples);
  return reference::evaluate_basis(layer, tape, samples);
}

template <class T>
void forward(Variant variant, const Layer<T>& layer, const LayerTape<T>& tape, Range samples, T* y) {
  if (variant == Variant::fast) return fast::forward(layer, tape, samples, y);
  reference::forward(layer, tape, samples, y);
}

template <class T>
void input_gradient(Variant variant, const Layer<T>& layer, const LayerTape<T>& tape, const T* dl_dy, Range samples,
                    T* dl_dx) {
  if (variant == Variant::fast) return fast::input_gradient(layer, tape, dl_dy, samples, dl_dx);
  reference::input_gradient(layer, tape, dl_dy, samples, dl_dx);
}

template <class T>
void weight_gradient(Variant variant, const Shape& shape, const LayerTape<T>& tape, const T* dl_dy, Range inputs,
                     GradientMode mode, T* dl_dw, InputHook each) {
  if (variant == Variant::fast) return fast::weight_gradient(shape, tape, dl_dy, inputs, mode, dl_dw, each);
  reference::weight_gradient(shape, tape, dl_dy, inputs, mode, dl_dw, each);
}

template <class T>
void bias_gradient(Variant variant, const Shape& shape, SampleExtent batch, const T* dl_dy, GradientMode mode,
                   T* dl_db) {
  if (variant == Variant::fast) return fast::bias_gradient(shape, batch, dl_dy, mode, dl_db);
  reference::bias_gradient(shape, batch, dl_dy, mode, dl_db);
}

template <class T>
void forward_single(Variant variant, const Layer<T>& layer, const T* x, T* y) {
  if (variant == Variant::fast) return fast::forward_single(layer, x, y);
  reference::forward_single(layer, x, y);
}

#define GRADLOOM_INSTANTIATE(T)                                                                                   \
  template std::size_t evaluate_basis<T>(Variant, const Layer<T>&, const LayerTape<T>&, Range);                   \
  template void forward<T>(Variant, const Layer<T>&, const LayerTape<T>&, Range, T*);                             \
  template void input_gradient<T>(Variant, const Layer<T>&, const LayerTape<T>&, const T*, Range, T*);            \
  template void weight_gradient<T>(Variant, const Shape&, const LayerTape<T>&, const T*, Range, GradientMode, T*, \
                                   InputHook);                                                                    \
  template void bias_gradient<T>(Variant, const Shape&, SampleExtent, const T*, GradientMode, T*);                \
  template void forward_single<T>(Variant, const Layer<T>&, const T*, T*);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::kernels::spline
