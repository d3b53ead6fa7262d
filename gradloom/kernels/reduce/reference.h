// The definition of the operations on one chunk. See reduce.h.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_REDUCE_REFERENCE_H_
#define GRADLOOM_KERNELS_REDUCE_REFERENCE_H_

#include <array>
#include <cstddef>

#include "gradloom/kernels/mul_add.h"

namespace gradloom::kernels::reduce::reference {

inline constexpr std::size_t kReduceLanes = 16;

}  // namespace gradloom::kernels::reduce::reference

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/reduce/reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::reduce::reference::GRADLOOM_ARITHMETIC {

using kernels::GRADLOOM_ARITHMETIC::mul_add;

template <class T>
T add_lanes(std::array<T, kReduceLanes> lanes) {
  for (std::size_t half = kReduceLanes / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lanes[l] = lanes[l] + lanes[l + half];
  return lanes[0];
}

template <class T>
T chunk_dot(const T* a, const T* b, std::size_t size) {
  std::array<T, kReduceLanes> lanes{};
  for (std::size_t n = 0; n < size; ++n) lanes[n % kReduceLanes] = mul_add(a[n], b[n], lanes[n % kReduceLanes]);
  return add_lanes(lanes);
}

// The larger one; NaN wins.
template <class T>
T larger(T a, T b) {
  return b > a || b != b ? b : a;
}

template <class T>
T chunk_max_abs(const T* a, std::size_t size) {
  T largest = 0;
  for (std::size_t n = 0; n < size; ++n) largest = larger(largest, a[n] < 0 ? -a[n] : a[n]);
  return largest;
}

template <class T>
void chunk_axpy(T factor, const T* x, T* y, std::size_t size) {
  for (std::size_t n = 0; n < size; ++n) y[n] = mul_add(factor, x[n], y[n]);
}

template <class T>
void chunk_scale(T factor, T* x, std::size_t size) {
  for (std::size_t n = 0; n < size; ++n) x[n] = factor * x[n];
}

}  // namespace gradloom::kernels::reduce::reference::GRADLOOM_ARITHMETIC

#endif
