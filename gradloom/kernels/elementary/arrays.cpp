#include "gradloom/kernels/elementary/arrays.h"

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/elementary/fast.h"

namespace gradloom::kernels::elementary {

template <class T>
void exp(Variant variant, std::span<const T> x, std::span<T> y) {
  GRADLOOM_CHOOSE(variant, exp<T>)(x, y);
}

template <class T>
void log(Variant variant, std::span<const T> x, std::span<T> y) {
  GRADLOOM_CHOOSE(variant, log<T>)(x, y);
}

template <class T>
void sigmoid(Variant variant, std::span<const T> x, std::span<T> y) {
  GRADLOOM_CHOOSE(variant, sigmoid<T>)(x, y);
}

template <class T>
void silu(Variant variant, std::span<const T> x, std::span<T> value, std::span<T> slope) {
  GRADLOOM_CHOOSE(variant, silu<T>)(x, value, slope);
}

GRADLOOM_INSTANTIATE(exp);
GRADLOOM_INSTANTIATE(log);
GRADLOOM_INSTANTIATE(sigmoid);
GRADLOOM_INSTANTIATE(silu);

}  // namespace gradloom::kernels::elementary
