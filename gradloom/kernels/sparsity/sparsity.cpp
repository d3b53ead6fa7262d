#include "gradloom/kernels/sparsity/sparsity.h"

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/sparsity/fast.h"

namespace gradloom::kernels::sparsity {

template <class T>
void strengths(Variant variant, const spline::Shape& shape, const T* weight, spline::Range inputs,
               const Strengths<T>& out) {
  GRADLOOM_CHOOSE(variant, strengths<T>)(shape, weight, inputs, out);
}

template <class T>
void add_gradient(Variant variant, const spline::Shape& shape, const T* weight, const Strengths<T>& of,
                  const Slopes<T>& slopes, spline::Range inputs, T* dl_dw) {
  GRADLOOM_CHOOSE(variant, add_gradient<T>)(shape, weight, of, slopes, inputs, dl_dw);
}

GRADLOOM_INSTANTIATE(strengths);
GRADLOOM_INSTANTIATE(add_gradient);

}  // namespace gradloom::kernels::sparsity
