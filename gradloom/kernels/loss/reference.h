// The definition of each loss: the terms, and their derivatives with respect to y. See kinds.inc.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_LOSS_REFERENCE_H_
#define GRADLOOM_KERNELS_LOSS_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "gradloom/kernels/elementary/elementary.h"
#include "gradloom/kernels/loss/loss.h"
#include "gradloom/kernels/mul_add.h"

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/loss/reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::loss::reference::GRADLOOM_ARITHMETIC {

using kernels::GRADLOOM_ARITHMETIC::exp;
using kernels::GRADLOOM_ARITHMETIC::log;
using kernels::GRADLOOM_ARITHMETIC::log1p;
using kernels::GRADLOOM_ARITHMETIC::mul_add;
using kernels::GRADLOOM_ARITHMETIC::neg_mul_add;
using kernels::GRADLOOM_ARITHMETIC::sigmoid;

template <class T>
struct Term {
  T value, slope;
};

template <Kind kind, class T>
Term<T> element_term(T delta, T y, T t) {
  const T e = y - t;
  if constexpr (kind == Kind::mse) {
    return {e * e, e + e};
  } else if constexpr (kind == Kind::mae) {
    return {std::abs(e), e > 0 ? T(1) : e < 0 ? T(-1) : T(0)};
  } else if constexpr (kind == Kind::huber) {
    const T a = std::abs(e);
    if (a <= delta) return {e * e * T(0.5), e};
    return {delta * neg_mul_add(delta, T(0.5), a), e > 0 ? delta : -delta};
  } else {
    static_assert(kind == Kind::binary_cross_entropy);
    // log(1 + exp(y)) - t y, without overflow for either sign.
    const T positive = std::max(y, T(0));
    return {neg_mul_add(t, y, positive) + log1p(exp(-std::abs(y))), sigmoid(y) - t};
  }
}

// Returns the term of one row; dl_dy = factor (softmax - one-hot), unless it is null.
template <class T>
T cross_entropy_row(const T* y, std::size_t out, std::size_t label, T factor, T* dl_dy) {
  const T top = *std::max_element(y, y + out);
  T sum = 0;
  for (std::size_t j = 0; j < out; ++j) {
    const T e = exp(y[j] - top);
    sum += e;
    if (dl_dy) dl_dy[j] = e;
  }
  if (dl_dy) {
    const T inverse = T(1) / sum;
    for (std::size_t j = 0; j < out; ++j) dl_dy[j] = (dl_dy[j] * inverse - (j == label ? T(1) : T(0))) * factor;
  }
  return log(sum) + top - y[label];
}

}  // namespace gradloom::kernels::loss::reference::GRADLOOM_ARITHMETIC

#endif
