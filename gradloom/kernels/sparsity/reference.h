// The definition of the kernels of sparsity.h.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_SPARSITY_REFERENCE_H_
#define GRADLOOM_KERNELS_SPARSITY_REFERENCE_H_

#include <cmath>

#include "gradloom/kernels/elementary/elementary.h"
#include "gradloom/kernels/mul_add.h"
#include "gradloom/kernels/sparsity/sparsity.h"

namespace gradloom::kernels::sparsity {

inline double total_of(double (&sums)[kSums]) {
  for (std::size_t half = kSums / 2; half > 0; half /= 2)
    for (std::size_t n = 0; n < half; ++n) sums[n] += sums[n + half];
  return sums[0];
}

}  // namespace gradloom::kernels::sparsity

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/sparsity/reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::sparsity::reference::GRADLOOM_ARITHMETIC {

using kernels::GRADLOOM_ARITHMETIC::log;
using kernels::GRADLOOM_ARITHMETIC::mul_add;
using kernels::GRADLOOM_ARITHMETIC::neg_mul_add;

template <class T>
void strengths(const spline::Shape& s, const T* weight, spline::Range inputs, const Strengths<T>& out) {
  const std::size_t pitch = s.out_padded(), rows = s.spline_rows(), width = s.out_lanes();
  const T least = static_cast<T>(kLeastStrength * kLeastStrength), share = T(1) / static_cast<T>(rows);
  for (std::size_t i = inputs.begin; i < inputs.end; ++i) {
    const T* w = weight + i * s.rows() * pitch;
    double node[kSums] = {}, weighted[kSums] = {};
    for (std::size_t j = 0; j < width; ++j) {
      T mean = w[j];
      for (std::size_t r = 1; r < rows; ++r) mean += w[r * pitch + j];
      mean *= share;
      T q = 0;
      for (std::size_t r = 0; r < rows; ++r) {
        const T d = w[r * pitch + j] - mean;
        q = mul_add(d, d, q);
      }
      q = mul_add(share, q, least);
      if (s.base) q = mul_add(w[rows * pitch + j], w[rows * pitch + j], q);
      const T strength = std::sqrt(q), logarithm = log(strength);
      out.mean[i * width + j] = mean;
      out.strength[i * width + j] = strength;
      out.logarithm[i * width + j] = logarithm;
      if (j >= s.out) continue;
      double& sum = weighted[j % kSums];
      node[j % kSums] += static_cast<double>(strength);
      sum = mul_add(static_cast<double>(strength), static_cast<double>(logarithm), sum);
    }
    out.node[i] = total_of(node), out.weighted[i] = total_of(weighted);
  }
}

template <class T>
void add_gradient(const spline::Shape& s, const T* weight, const Strengths<T>& strengths, const Slopes<T>& slopes,
                  spline::Range inputs, T* dl_dw) {
  const std::size_t pitch = s.out_padded(), rows = s.spline_rows(), width = s.out_lanes();
  const T share = T(1) / static_cast<T>(rows);
  for (std::size_t i = inputs.begin; i < inputs.end; ++i) {
    const T* w = weight + i * s.rows() * pitch;
    T* g = dl_dw + i * s.rows() * pitch;
    for (std::size_t j = 0; j < width; ++j) {
      const std::size_t at = i * width + j;
      const T f = neg_mul_add(slopes.slope, strengths.logarithm[at], slopes.common[i]) / strengths.strength[at];
      const T part = f * share;
      for (std::size_t r = 0; r < rows; ++r) {
        T& to = g[r * pitch + j];
        to = mul_add(part, w[r * pitch + j] - strengths.mean[at], to);
      }
      if (s.base) g[rows * pitch + j] = mul_add(f, w[rows * pitch + j], g[rows * pitch + j]);
    }
  }
}

}  // namespace gradloom::kernels::sparsity::reference::GRADLOOM_ARITHMETIC

#endif
