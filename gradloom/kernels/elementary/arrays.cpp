#include "gradloom/kernels/elementary/arrays.h"

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/elementary/fast.h"

namespace gradloom::kernels::elementary {

template <class T>
void exp(Variant variant, std::span<const T> x, std::span<T> y) {
  choose(variant, reference::exp<T>, fast::exp<T>)(x, y);
}

template <class T>
void log(Variant variant, std::span<const T> x, std::span<T> y) {
  choose(variant, reference::log<T>, fast::log<T>)(x, y);
}

template <class T>
void sigmoid(Variant variant, std::span<const T> x, std::span<T> y) {
  choose(variant, reference::sigmoid<T>, fast::sigmoid<T>)(x, y);
}

template <class T>
void silu(Variant variant, std::span<const T> x, std::span<T> value, std::span<T> slope) {
  choose(variant, reference::silu<T>, fast::silu<T>)(x, value, slope);
}

GRADLOOM_INSTANTIATE(exp);
GRADLOOM_INSTANTIATE(log);
GRADLOOM_INSTANTIATE(sigmoid);
GRADLOOM_INSTANTIATE(silu);

}  // namespace gradloom::kernels::elementary
