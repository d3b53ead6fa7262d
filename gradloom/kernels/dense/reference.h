// The definition of the dense product, number by number. See dense.h.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_DENSE_REFERENCE_H_
#define GRADLOOM_KERNELS_DENSE_REFERENCE_H_

#include "gradloom/kernels/dense/dense.h"
#include "gradloom/kernels/mul_add.h"

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/dense/reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::dense::reference::GRADLOOM_ARITHMETIC {

using kernels::GRADLOOM_ARITHMETIC::mul_add;

template <class T>
void multiply(const Product<T>& p) {
  for (std::size_t r = 0; r < p.rows; ++r)
    for (std::size_t f = 0; f < p.width; ++f) {
      T& y = p.y[r * p.y_stride + f];
      T sum = p.start == Start::y ? y : p.start == Start::bias ? p.bias[f] : T(0);
      for (std::size_t k = 0; k < p.inner; ++k)
        sum = mul_add(p.x[r * p.x_row + k * p.x_inner], p.w[k * p.w_stride + f], sum);
      y = p.start == Start::apart ? y + sum : sum;
    }
}

}  // namespace gradloom::kernels::dense::reference::GRADLOOM_ARITHMETIC

#endif
