// The definition of gathers and maxima, number by number. See message.h.
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
    sum = mul_add(g.factor(e), g.x[(g.source ? g.source[e] : e) * g.x_stride + f], sum);
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

template <class T>
T dot8(const T* a, const T* b, std::size_t width) {
  T lane[8] = {};
  for (std::size_t f = 0; f < width; f += 8)
    for (std::size_t l = 0; l < 8; ++l) lane[l] = mul_add(a[f + l], b[f + l], lane[l]);
  for (std::size_t half = 4; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lane[l] = lane[l] + lane[l + half];
  return lane[0];
}

template <class T>
void value_gradient(const Gather<T>& g, const T* dl_dy, std::size_t dl_dy_stride, std::size_t begin, std::size_t end,
                    Onto onto, T* dl_dv) {
  for (std::size_t i = begin; i < end; ++i)
    for (std::size_t e = g.ptr[i]; e < g.ptr[i + 1]; ++e) {
      const std::size_t j = g.source ? g.source[e] : e;
      const T r = g.row_scale ? g.row_scale[i] : T(1), s = g.source_scale ? g.source_scale[j] : T(1);
      const T v = (r * s) * dot8(dl_dy + i * dl_dy_stride, g.x + j * g.x_stride, g.width);
      T& to = dl_dv[g.slot ? g.slot[e] : e];
      to = onto == Onto::add ? to + v : v;
    }
}

template <class T>
void max_rows(const Maximum<T>& m, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    T* __restrict y = m.y + i * m.stride;
    std::uint32_t* __restrict winner = m.winner + i * m.stride;
    std::fill_n(y, m.width, T(0));
    std::fill_n(winner, m.width, kNobody);
    for (std::uint32_t e = m.ptr[i]; e < m.ptr[i + 1]; ++e) {
      const T* __restrict x = m.x + m.source[e] * m.x_stride;
      for (std::size_t f = 0; f < m.width; ++f) {
        const bool wins = winner[f] == kNobody || x[f] > y[f];
        y[f] = wins ? x[f] : y[f];
        winner[f] = wins ? e : winner[f];
      }
    }
  }
}

template <class T>
void max_gradient_rows(const MaximumGradient<T>& m, std::size_t begin, std::size_t end) {
  for (std::size_t j = begin; j < end; ++j) {
    T* __restrict dl_dx = m.dl_dx + j * m.dl_dx_stride;
    for (std::size_t p = m.out_ptr[j]; p < m.out_ptr[j + 1]; ++p) {
      const std::size_t row = m.target[p] * m.stride;
      const std::uint32_t* __restrict winner = m.winner + row;
      const T* __restrict dl_dy = m.dl_dy + row;
      const std::uint32_t slot = m.slot[p];
      for (std::size_t f = 0; f < m.width; ++f) dl_dx[f] = dl_dx[f] + (winner[f] == slot ? dl_dy[f] : T(0));
    }
  }
}

}  // namespace gradloom::kernels::message::reference::GRADLOOM_ARITHMETIC

#endif
