// The definition of the functions of whole arrays: elementary.h on each element. See arrays.h.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_ELEMENTARY_REFERENCE_H_
#define GRADLOOM_KERNELS_ELEMENTARY_REFERENCE_H_

#include <cstddef>
#include <span>

#include "gradloom/kernels/elementary/elementary.h"
#include "gradloom/kernels/mul_add.h"

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/elementary/reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::elementary::reference::GRADLOOM_ARITHMETIC {

template <class T>
void exp(std::span<const T> x, std::span<T> y) {
  for (std::size_t n = 0; n < x.size(); ++n) y[n] = kernels::GRADLOOM_ARITHMETIC::exp(x[n]);
}

template <class T>
void log(std::span<const T> x, std::span<T> y) {
  for (std::size_t n = 0; n < x.size(); ++n) y[n] = kernels::GRADLOOM_ARITHMETIC::log(x[n]);
}

template <class T>
void sigmoid(std::span<const T> x, std::span<T> y) {
  for (std::size_t n = 0; n < x.size(); ++n) y[n] = kernels::GRADLOOM_ARITHMETIC::sigmoid(x[n]);
}

template <class T>
void silu(std::span<const T> x, std::span<T> value, std::span<T> slope) {
  for (std::size_t n = 0; n < x.size(); ++n) {
    const auto r = kernels::GRADLOOM_ARITHMETIC::silu(x[n]);
    value[n] = r.value, slope[n] = r.slope;
  }
}

}  // namespace gradloom::kernels::elementary::reference::GRADLOOM_ARITHMETIC

#endif
