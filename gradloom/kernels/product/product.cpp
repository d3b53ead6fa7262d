#include "gradloom/kernels/product/product.h"

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/product/fast.h"

namespace gradloom::kernels::product {

template <class T>
void forward(Variant variant, const LayerNodes& shape, std::size_t stride, spline::Range samples, const T* sums,
             T* nodes) {
  GRADLOOM_CHOOSE(variant, forward<T>)(shape, stride, samples, sums, nodes);
}

template <class T>
void backward(Variant variant, const LayerNodes& shape, std::size_t stride, spline::Range samples, const T* sums,
              const T* dl_dnodes, T* dl_dsums) {
  GRADLOOM_CHOOSE(variant, backward<T>)(shape, stride, samples, sums, dl_dnodes, dl_dsums);
}

GRADLOOM_INSTANTIATE(forward);
GRADLOOM_INSTANTIATE(backward);

}  // namespace gradloom::kernels::product
