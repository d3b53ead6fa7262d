#include "gradloom/kernels/gate/gate.h"

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/gate/fast.h"

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
  GRADLOOM_CHOOSE(variant, coefficients<T>)(logits, position, stride, gates);
}

template <class T>
void logit_gradient(Variant variant, std::span<const T> logits, const std::uint32_t* position, std::size_t stride,
                    const T* sums, GradientMode mode, T* dl_dz) {
  GRADLOOM_CHOOSE(variant, logit_gradient<T>)(logits, position, stride, sums, mode, dl_dz);
}

template <class T>
void forward(Variant variant, const Layer<T>& layer, const T* in, T* out, const Copies& copies) {
  GRADLOOM_CHOOSE(variant, forward<T>)(layer, in, out, copies);
}

template <class T>
void backward(Variant variant, const Layer<T>& layer, const LayerGradient<T>& arrays) {
  GRADLOOM_CHOOSE(variant, backward<T>)(layer, arrays);
}

GRADLOOM_INSTANTIATE(place_gates);
GRADLOOM_INSTANTIATE(coefficients);
GRADLOOM_INSTANTIATE(logit_gradient);
GRADLOOM_INSTANTIATE(forward);
GRADLOOM_INSTANTIATE(backward);

}  // namespace gradloom::kernels::gate
