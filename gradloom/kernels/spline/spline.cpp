#include "gradloom/kernels/spline/spline.h"

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/spline/fast.h"

namespace gradloom::kernels::spline {

template <class T>
std::size_t evaluate_basis(Variant variant, const Layer<T>& layer, const LayerTape<T>& tape, Range samples) {
  return GRADLOOM_CHOOSE(variant, evaluate_basis<T>)(layer, tape, samples);
}

template <class T>
void forward(Variant variant, const Layer<T>& layer, const LayerTape<T>& tape, Range samples, T* y) {
  GRADLOOM_CHOOSE(variant, forward<T>)(layer, tape, samples, y);
}

template <class T>
void input_gradient(Variant variant, const Layer<T>& layer, const LayerTape<T>& tape, const T* dl_dy, Range samples,
                    T* dl_dx) {
  GRADLOOM_CHOOSE(variant, input_gradient<T>)(layer, tape, dl_dy, samples, dl_dx);
}

template <class T>
void weight_gradient(Variant variant, const Shape& shape, const LayerTape<T>& tape, const T* dl_dy, Range inputs,
                     const reduce::TreeSum<T>& dl_dw, InputHook each) {
  GRADLOOM_CHOOSE(variant, weight_gradient<T>)(shape, tape, dl_dy, inputs, dl_dw, each);
}

template <class T>
void bias_gradient(Variant variant, const Shape& shape, SampleExtent batch, const T* dl_dy,
                   const reduce::TreeSum<T>& dl_db) {
  GRADLOOM_CHOOSE(variant, bias_gradient<T>)(shape, batch, dl_dy, dl_db);
}

template <class T>
void forward_single(Variant variant, const Layer<T>& layer, const T* x, T* y) {
  GRADLOOM_CHOOSE(variant, forward_single<T>)(layer, x, y);
}

GRADLOOM_INSTANTIATE(evaluate_basis);
GRADLOOM_INSTANTIATE(forward);
GRADLOOM_INSTANTIATE(input_gradient);
GRADLOOM_INSTANTIATE(weight_gradient);
GRADLOOM_INSTANTIATE(bias_gradient);
GRADLOOM_INSTANTIATE(forward_single);

}  // namespace gradloom::kernels::spline
