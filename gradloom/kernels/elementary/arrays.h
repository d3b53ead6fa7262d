// exp, log and sigmoid of whole arrays; the same bits as the functions of elementary.h on each element.
#pragma once

#include <span>

#include "gradloom/exec/exec.h"

namespace gradloom::kernels::elementary {

// y[n] = f(x[n]); equal sizes, which may be 0; y may be x.
template <class T>
void exp(Variant variant, std::span<const T> x, std::span<T> y);
template <class T>
void log(Variant variant, std::span<const T> x, std::span<T> y);
template <class T>
void sigmoid(Variant variant, std::span<const T> x, std::span<T> y);
// value[n] = silu(x[n]), slope[n] its derivative.
template <class T>
void silu(Variant variant, std::span<const T> x, std::span<T> value, std::span<T> slope);

}  // namespace gradloom::kernels::elementary
