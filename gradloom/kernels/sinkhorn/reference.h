// The definition of Sinkhorn's iteration, number by number. See sinkhorn.h.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_SINKHORN_REFERENCE_H_
#define GRADLOOM_KERNELS_SINKHORN_REFERENCE_H_

#include <algorithm>

#include "gradloom/kernels/elementary/elementary.h"
#include "gradloom/kernels/reduce/lanes.h"
#include "gradloom/kernels/sinkhorn/sinkhorn.h"

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/sinkhorn/reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::sinkhorn::reference::GRADLOOM_ARITHMETIC {

using kernels::GRADLOOM_ARITHMETIC::exp;
using kernels::GRADLOOM_ARITHMETIC::lane_sum;
using kernels::GRADLOOM_ARITHMETIC::log;
using kernels::GRADLOOM_ARITHMETIC::mul_add;
using kernels::GRADLOOM_ARITHMETIC::neg_mul_add;

template <class T>
T exponent(const Costs<T>& c, std::size_t i, std::size_t j, T a) {
  return neg_mul_add(c.k[i * c.columns + j], c.sharpness, a);
}

template <class T>
void scale_rows(const Costs<T>& c, const T* g, T* f) {
  for (std::size_t i = 0; i < c.rows; ++i) {
    T most = exponent(c, i, 0, g[0]);
    for (std::size_t j = 1; j < c.columns; ++j) most = std::max(most, exponent(c, i, j, g[j]));
    const T sum = lane_sum(0, c.columns,
                           [&](std::size_t j) GRADLOOM_ARITHMETIC_ATTR { return exp(exponent(c, i, j, g[j]) - most); });
    f[i] = c.row_sum(i) - (most + log(sum));
  }
}

template <class T>
void scale_columns(const Costs<T>& c, const T* f, T* g) {
  for (std::size_t j = 0; j < c.columns; ++j) {
    T most = exponent(c, 0, j, f[0]), sum = 0;
    for (std::size_t i = 1; i < c.rows; ++i) most = std::max(most, exponent(c, i, j, f[i]));
    for (std::size_t i = 0; i < c.rows; ++i) sum = sum + exp(exponent(c, i, j, f[i]) - most);
    g[j] = c.column_sum(j) - (most + log(sum));
  }
}

template <class T>
void matching(const Costs<T>& c, const T* f, const T* g, T* p) {
  for (std::size_t i = 0; i < c.rows; ++i)
    for (std::size_t j = 0; j < c.columns; ++j) p[i * c.columns + j] = exp(exponent(c, i, j, f[i] + g[j]));
}

template <class T>
void scale_columns_gradient(const Costs<T>& c, const T* f, const T* g, const T* dg, T* df, T* dk) {
  for (std::size_t i = 0; i < c.rows; ++i)
    df[i] = df[i] - lane_sum(0, c.columns, [&](std::size_t j) GRADLOOM_ARITHMETIC_ATTR {
              const T w = exp(exponent(c, i, j, (f[i] + g[j]) - c.column_sum(j))) * dg[j];
              T& d = dk[i * c.columns + j];
              d = mul_add(c.sharpness, w, d);
              return w;
            });
}

template <class T>
void scale_rows_gradient(const Costs<T>& c, const T* f, const T* g, const T* df, T* dg, T* dk) {
  std::fill_n(dg, c.columns, T(0));
  for (std::size_t i = 0; i < c.rows; ++i)
    for (std::size_t j = 0; j < c.columns; ++j) {
      const T v = exp(exponent(c, i, j, (f[i] + g[j]) - c.row_sum(i))) * df[i];
      T& d = dk[i * c.columns + j];
      d = mul_add(c.sharpness, v, d);
      dg[j] = dg[j] - v;
    }
}

}  // namespace gradloom::kernels::sinkhorn::reference::GRADLOOM_ARITHMETIC

#endif
