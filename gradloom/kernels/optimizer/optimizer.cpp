// The updates on SIMD; tails go through the definition.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/optimizer/optimizer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/optimizer/optimizer.h"

#include "gradloom/kernels/optimizer/reference.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels {
namespace HWY_NAMESPACE {

// Whether prepare_gradient has nothing to do.
template <class T>
bool is_plain(const GradientOptions<T>& o) {
  return o.scale == T(1) && o.limit == std::numeric_limits<T>::infinity() && o.l2 == T(0);
}

template <bool kPlain, class T, class V>
HWY_INLINE V prepare_gradient(const GradientOptions<T>& o, V g, V w) {
  constexpr Tag<T> d;
  if constexpr (kPlain) return g;
  const V high = hn::Set(d, o.limit), low = hn::Set(d, -o.limit);
  g = hn::Mul(hn::Set(d, o.scale), g);
  g = hn::IfThenElse(hn::Lt(g, low), low, g);
  g = hn::IfThenElse(hn::Gt(g, high), high, g);
  return o.l2 == T(0) ? g : hn::Add(g, hn::Mul(hn::Set(d, o.l2), w));
}

template <bool kVelocity, class T>
HWY_INLINE void sgd(const SgdStep<T> step, T* HWY_RESTRICT w, const T* HWY_RESTRICT gradient, T* HWY_RESTRICT velocity,
                    std::size_t size) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  using V = hn::Vec<Tag<T>>;
  const V rate = hn::Set(d, step.rate), momentum = hn::Set(d, step.momentum);
  std::size_t n = 0;
  for (; n + lanes <= size; n += lanes) {
    const V weight = hn::LoadU(d, w + n);
    const V g = prepare_gradient<false>(step.gradient, hn::LoadU(d, gradient + n), weight);
    V direction = g;
    if constexpr (kVelocity) {
      const V v = hn::Add(hn::Mul(momentum, hn::LoadU(d, velocity + n)), g);
      hn::StoreU(v, d, velocity + n);
      direction = step.nesterov ? hn::Add(g, hn::Mul(momentum, v)) : v;
    }
    hn::StoreU(hn::Sub(weight, hn::Mul(rate, direction)), d, w + n);
  }
  for (; n < size; ++n) reference::sgd_element(step, w[n], gradient[n], kVelocity ? velocity + n : nullptr);
}

// kPlain: the gradient is taken as it is, and weights do not decay. That saves a third of the operations on the units
// that also divide and take roots.
template <bool kPlain, class T>
HWY_INLINE void adam(const AdamStep<T> step, T* HWY_RESTRICT w, const T* HWY_RESTRICT gradient, T* HWY_RESTRICT first,
                     T* HWY_RESTRICT second, std::size_t size) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  using V = hn::Vec<Tag<T>>;
  const V rate = hn::Set(d, step.rate), root_correction = hn::Set(d, step.root_correction);
  const V beta1 = hn::Set(d, step.beta1), rest1 = hn::Set(d, step.one_minus_beta1);
  const V beta2 = hn::Set(d, step.beta2), rest2 = hn::Set(d, step.one_minus_beta2);
  const V epsilon = hn::Set(d, step.epsilon), keep = hn::Set(d, step.keep);
  std::size_t n = 0;
  for (; n + lanes <= size; n += lanes) {
    const V weight = hn::LoadU(d, w + n);
    const V g = prepare_gradient<kPlain>(step.gradient, hn::LoadU(d, gradient + n), weight);
    const V m = hn::Add(hn::Mul(beta1, hn::LoadU(d, first + n)), hn::Mul(rest1, g));
    const V v = hn::Add(hn::Mul(beta2, hn::LoadU(d, second + n)), hn::Mul(rest2, hn::Mul(g, g)));
    hn::StoreU(m, d, first + n);
    hn::StoreU(v, d, second + n);
    const V change = hn::Div(m, hn::Add(hn::Mul(root_correction, hn::Sqrt(v)), epsilon));
    hn::StoreU(hn::Sub(kPlain ? weight : hn::Mul(keep, weight), hn::Mul(rate, change)), d, w + n);
  }
  for (; n < size; ++n) reference::adam_element(step, w[n], gradient[n], first[n], second[n]);
}

#define GRADLOOM_DEFINE(T)                                                                                            \
  void sgd_##T(const SgdStep<T>& step, T* w, const T* gradient, T* velocity, std::size_t size) {                      \
    velocity ? sgd<true>(step, w, gradient, velocity, size) : sgd<false>(step, w, gradient, velocity, size);          \
  }                                                                                                                   \
  void adam_##T(const AdamStep<T>& step, T* w, const T* gradient, T* first, T* second, std::size_t size) {            \
    const bool plain = is_plain(step.gradient) && step.keep == T(1);                                                  \
    plain ? adam<true>(step, w, gradient, first, second, size) : adam<false>(step, w, gradient, first, second, size); \
  }
GRADLOOM_DEFINE(float)
GRADLOOM_DEFINE(double)
#undef GRADLOOM_DEFINE

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels {
HWY_EXPORT(sgd_float);
HWY_EXPORT(sgd_double);
HWY_EXPORT(adam_float);
HWY_EXPORT(adam_double);

template <class T>
AdamStep<T> adam_step(double learning_rate, double beta1, double beta2, double epsilon, double decoupled_decay,
                      unsigned long t, const GradientOptions<T>& gradient) {
  AdamStep<T> step;
  step.gradient = gradient;
  step.rate = static_cast<T>(learning_rate / (1 - std::pow(beta1, static_cast<double>(t))));
  step.root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, static_cast<double>(t))));
  step.beta1 = static_cast<T>(beta1), step.one_minus_beta1 = static_cast<T>(1 - beta1);
  step.beta2 = static_cast<T>(beta2), step.one_minus_beta2 = static_cast<T>(1 - beta2);
  step.epsilon = static_cast<T>(epsilon);
  step.keep = static_cast<T>(1 - learning_rate * decoupled_decay);
  return step;
}

template <class T>
void sgd_update(Variant variant, const SgdStep<T>& step, std::span<T> parameters, std::span<const T> gradient,
                std::span<T> velocity) {
  T* v = velocity.empty() ? nullptr : velocity.data();
  if (variant == Variant::fast) {
    if constexpr (std::is_same_v<T, float>)
      HWY_DYNAMIC_DISPATCH(sgd_float)(step, parameters.data(), gradient.data(), v, parameters.size());
    else
      HWY_DYNAMIC_DISPATCH(sgd_double)(step, parameters.data(), gradient.data(), v, parameters.size());
    return;
  }
  for (std::size_t n = 0; n < parameters.size(); ++n)
    reference::sgd_element(step, parameters[n], gradient[n], v ? v + n : nullptr);
}

template <class T>
void adam_update(Variant variant, const AdamStep<T>& step, std::span<T> parameters, std::span<const T> gradient,
                 std::span<T> first, std::span<T> second) {
  if (variant == Variant::fast) {
    T *w = parameters.data(), *m = first.data(), *v = second.data();
    if constexpr (std::is_same_v<T, float>)
      HWY_DYNAMIC_DISPATCH(adam_float)(step, w, gradient.data(), m, v, parameters.size());
    else
      HWY_DYNAMIC_DISPATCH(adam_double)(step, w, gradient.data(), m, v, parameters.size());
    return;
  }
  for (std::size_t n = 0; n < parameters.size(); ++n)
    reference::adam_element(step, parameters[n], gradient[n], first[n], second[n]);
}

#define GRADLOOM_INSTANTIATE(T)                                                                                        \
  template AdamStep<T> adam_step<T>(double, double, double, double, double, unsigned long, const GradientOptions<T>&); \
  template void sgd_update<T>(Variant, const SgdStep<T>&, std::span<T>, std::span<const T>, std::span<T>);             \
  template void adam_update<T>(Variant, const AdamStep<T>&, std::span<T>, std::span<const T>, std::span<T>,            \
                               std::span<T>);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::kernels
#endif
