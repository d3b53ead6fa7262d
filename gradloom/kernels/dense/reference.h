// The definition of the dense product, number by number. See dense.h.
#pragma once

#include "gradloom/kernels/dense/dense.h"

namespace gradloom::kernels::dense::reference {

template <class T>
void multiply(const Product<T>& p) {
  for (std::size_t r = 0; r < p.rows; ++r)
    for (std::size_t f = 0; f < p.width; ++f) {
      T& y = p.y[r * p.y_stride + f];
      T sum = p.start == Start::y ? y : p.start == Start::bias ? p.bias[f] : T(0);
      for (std::size_t k = 0; k < p.inner; ++k) sum = sum + p.x[r * p.x_row + k * p.x_inner] * p.w[k * p.w_stride + f];
      y = p.start == Start::apart ? y + sum : sum;
    }
}

}  // namespace gradloom::kernels::dense::reference
