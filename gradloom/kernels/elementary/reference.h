// The definition of the functions of whole arrays: elementary.h on each element. See arrays.h.
#pragma once

#include <cstddef>
#include <span>

#include "gradloom/kernels/elementary/elementary.h"

namespace gradloom::kernels::elementary::reference {

template <class T>
void exp(std::span<const T> x, std::span<T> y) {
  for (std::size_t n = 0; n < x.size(); ++n) y[n] = kernels::exp(x[n]);
}

template <class T>
void log(std::span<const T> x, std::span<T> y) {
  for (std::size_t n = 0; n < x.size(); ++n) y[n] = kernels::log(x[n]);
}

template <class T>
void sigmoid(std::span<const T> x, std::span<T> y) {
  for (std::size_t n = 0; n < x.size(); ++n) y[n] = kernels::sigmoid(x[n]);
}

template <class T>
void silu(std::span<const T> x, std::span<T> value, std::span<T> slope) {
  for (std::size_t n = 0; n < x.size(); ++n) {
    const auto r = kernels::silu(x[n]);
    value[n] = r.value, slope[n] = r.slope;
  }
}

}  // namespace gradloom::kernels::elementary::reference
