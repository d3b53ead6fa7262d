#include "gradloom/kernels/gate/gate.h"

#include "gradloom/kernels/gate/fast.h"
#include "gradloom/kernels/gate/reference.h"

namespace gradloom::kernels::gate {

template <class T>
void coefficients(Variant variant, std::span<const T> logits, Gate<T>* gates, std::size_t stride) {
  if (variant == Variant::fast) return fast::coefficients(logits, gates, stride);
  reference::coefficients(logits, gates, stride);
}

template <class T>
void logit_gradient(Variant variant, std::span<const T> logits, const T* sums, std::size_t stride, GradientMode mode,
                    T* dl_dz) {
  if (variant == Variant::fast) return fast::logit_gradient(logits, sums, stride, mode, dl_dz);
  reference::logit_gradient(logits, sums, stride, mode, dl_dz);
}

template <class T>
void forward(Variant variant, std::span<const Gate<T>> gates, const T* in, T* out, const Copies& copies) {
  if (variant == Variant::fast) return fast::forward(gates, in, out, copies);
  for (std::size_t k = 0; k < copies.count; ++k)
    reference::forward(gates, in + k * copies.in_step, out + k * copies.out_step);
}

template <class T>
void backward(Variant variant, std::span<const Gate<T>> gates, const LayerGradient<T>& arrays) {
  if (variant == Variant::fast) return fast::backward(gates, arrays);
  reference::backward(gates, arrays);
}

#define GRADLOOM_INSTANTIATE(T)                                                                          \
  template void coefficients<T>(Variant, std::span<const T>, Gate<T>*, std::size_t);                     \
  template void logit_gradient<T>(Variant, std::span<const T>, const T*, std::size_t, GradientMode, T*); \
  template void forward<T>(Variant, std::span<const Gate<T>>, const T*, T*, const Copies&);              \
  template void backward<T>(Variant, std::span<const Gate<T>>, const LayerGradient<T>&);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::kernels::gate
