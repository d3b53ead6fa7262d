// The definition of the gathers, number by number. See message.h.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_MESSAGE_REFERENCE_H_
#define GRADLOOM_KERNELS_MESSAGE_REFERENCE_H_

#include <algorithm>

#include "gradloom/kernels/message/message.h"
#include "gradloom/kernels/mul_add.h"

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/message/reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::message::reference::GRADLOOM_ARITHMETIC {

using kernels::GRADLOOM_ARITHMETIC::mul_add;

// Arcs [first, last) of a row; `begins`: with the self term.
template <class T>
T sum_of(const Gather<T>& g, std::size_t row, std::size_t first, std::size_t last, bool begins, std::size_t f) {
  T sum = 0;
  if (begins && g.self != T(0)) {
    const T w = g.source_scale ? g.self * g.source_scale[row] : g.self;
    sum = w * g.x[row * g.x_stride + f];
  }
  for (std::size_t e = first; e < last; ++e)
    sum = sum + g.factor(e) * g.x[(g.source ? g.source[e] : e) * g.x_stride + f];
  return sum;
}

template <class T>
void gather_rows(const Gather<T>& g, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    if (g.ptr[i + 1] - g.ptr[i] > kSegment) continue;
    for (std::size_t f = 0; f < g.width; ++f) {
      const T sum = sum_of(g, i, g.ptr[i], g.ptr[i + 1], true, f);
      g.y[i * g.y_stride + f] = g.row_scale ? g.row_scale[i] * sum : sum;
    }
  }
}

template <class T>
void gather_segment(const Gather<T>& g, std::size_t row, std::size_t segment, T* sum) {
  const std::size_t first = g.ptr[row] + segment * kSegment;
  const std::size_t last = std::min<std::size_t>(g.ptr[row + 1], first + kSegment);
  for (std::size_t f = 0; f < g.width; ++f) sum[f] = sum_of(g, row, first, last, segment == 0, f);
}

}  // namespace gradloom::kernels::message::reference::GRADLOOM_ARITHMETIC

#endif
