#include "gradloom/kernels/gate/gate.h"

#include "gradloom/kernels/gate/fast.h"
#include "gradloom/kernels/gate/reference.h"

namespace gradloom::kernels::gate {

template <class T>
void place_gates(std::span<const GateRows> gates, const LayerPlan& plan, Gate<T>* to) {
  const auto offset = [](std::size_t row) { return static_cast<std::uint32_t>(row * kTile); };
  for (std::size_t n = 0; n < gates.size(); ++n) {
    Gate<T>& gate = to[plan.position[n]];
    gate.a = offset(gates[n].a), gate.b = offset(gates[n].b), gate.out = offset(n);
  }
}

template <class T>
void coefficients(Variant variant, std::span<const T> logits, const std::uint32_t* position, std::size_t stride,
                  Gate<T>* gates) {
  if (variant == Variant::fast) return fast::coefficients(logits, position, stride, gates);
  reference::coefficients(logits, position, stride, gates);
}

template <class T>
void logit_gradient(Variant variant, std::span<const T> logits, const std::uint32_t* position, std::size_t stride,
                    const T* sums, GradientMode mode, T* dl_dz) {
  if (variant == Variant::fast) return fast::logit_gradient(logits, position, stride, sums, mode, dl_dz);
  reference::logit_gradient(logits, position, stride, sums, mode, dl_dz);
}

template <class T>
void forward(Variant variant, const Layer<T>& layer, const T* in, T* out, const Copies& copies) {
  if (variant == Variant::fast) return fast::forward(layer, in, out, copies);
  for (std::size_t k = 0; k < copies.count; ++k)
    reference::forward(layer, in + k * copies.in_step, out + k * copies.out_step);
}

template <class T>
void backward(Variant variant, const Layer<T>& layer, const LayerGradient<T>& arrays) {
  if (variant == Variant::fast) return fast::backward(layer, arrays);
  reference::backward(layer, arrays);
}

#define GRADLOOM_INSTANTIATE(T)                                                                             \
  template void place_gates<T>(std::span<const GateRows>, const LayerPlan&, Gate<T>*);                      \
  template void coefficients<T>(Variant, std::span<const T>, const std::uint32_t*, std::size_t, Gate<T>*);  \
  template void logit_gradient<T>(Variant, std::span<const T>, const std::uint32_t*, std::size_t, const T*, \
                                  GradientMode, T*);                                                        \
  template void forward<T>(Variant, const Layer<T>&, const T*, T*, const Copies&);                          \
  template void backward<T>(Variant, const Layer<T>&, const LayerGradient<T>&);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::kernels::gate
