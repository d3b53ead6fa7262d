#include "gradloom/kernels/rowwise/rowwise.h"

#include <bit>
#include <cmath>
#include <type_traits>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/rowwise/fast.h"

namespace gradloom::kernels::rowwise {

template <class T>
void activate(Variant variant, const Rows& r, Activation act, const T* x, const T* bias, const T* residual, T* y) {
  GRADLOOM_CHOOSE(variant, activate<T>)(r, act, x, bias, residual, y);
}

template <class T>
void activate_gradient(Variant variant, const Rows& r, Activation act, const T* x, const T* bias, const T* dl_dy,
                       T* dl_dx) {
  GRADLOOM_CHOOSE(variant, activate_gradient<T>)(r, act, x, bias, dl_dy, dl_dx);
}

template <class T>
void layer_norm(Variant variant, const Rows& r, const LayerNorm<T>& n) {
  GRADLOOM_CHOOSE(variant, layer_norm<T>)(r, n);
}

template <class T>
void layer_norm_gradient(Variant variant, const Rows& r, const LayerNorm<T>& n, const T* dl_dy, T* dl_dx, T* dl_dgain,
                         T* dl_dshift) {
  GRADLOOM_CHOOSE(variant, layer_norm_gradient<T>)(r, n, dl_dy, dl_dx, dl_dgain, dl_dshift);
}

template <class T>
void squared_deviation(Variant variant, const Rows& r, const T* x, const T* mean, T* sums) {
  GRADLOOM_CHOOSE(variant, squared_deviation<T>)(r, x, mean, sums);
}

template <class T>
void batch_norm(Variant variant, const Rows& r, const BatchNorm<T>& n, T* y) {
  GRADLOOM_CHOOSE(variant, batch_norm<T>)(r, n, y);
}

template <class T>
void batch_norm_sums(Variant variant, const Rows& r, const BatchNorm<T>& n, const T* dl_dy, T* dl_dgain, T* dl_dshift) {
  GRADLOOM_CHOOSE(variant, batch_norm_sums<T>)(r, n, dl_dy, dl_dgain, dl_dshift);
}

template <class T>
void batch_norm_gradient(Variant variant, const Rows& r, const BatchNorm<T>& n, const T* dl_dy, const T* mean_dy,
                         const T* mean_dy_xhat, T* dl_dx) {
  GRADLOOM_CHOOSE(variant, batch_norm_gradient<T>)(r, n, dl_dy, mean_dy, mean_dy_xhat, dl_dx);
}

template <class T>
void add(const Rows& r, const T* __restrict x, T* __restrict y) {
  for (std::size_t n = r.begin * r.stride; n < r.end * r.stride; ++n) y[n] = y[n] + x[n];
}

Dropout::Dropout(double probability, std::uint64_t seed, std::uint32_t epoch, std::uint32_t sample)
    : key_{static_cast<std::uint32_t>(std::lround(probability * 65536.0)),
           sample,
           epoch,
           static_cast<std::uint32_t>(RandomUse::dropout),
           {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}},
      scale_(65536.0 / (65536.0 - key_.threshold)) {}

// By masks: which numbers are kept is random, so no branch on it can be foreseen.
template <class T>
void apply_dropout(const T* __restrict x, const std::uint8_t* __restrict keep, T scale, std::size_t begin,
                   std::size_t end, T* __restrict y) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  for (std::size_t n = begin; n < end; ++n)
    y[n] = std::bit_cast<T>(std::bit_cast<Bits>(scale * x[n]) & (Bits{0} - static_cast<Bits>(keep[n])));
}

GRADLOOM_INSTANTIATE(activate);
GRADLOOM_INSTANTIATE(activate_gradient);
GRADLOOM_INSTANTIATE(add);
GRADLOOM_INSTANTIATE(layer_norm);
GRADLOOM_INSTANTIATE(layer_norm_gradient);
GRADLOOM_INSTANTIATE(squared_deviation);
GRADLOOM_INSTANTIATE(batch_norm);
GRADLOOM_INSTANTIATE(batch_norm_sums);
GRADLOOM_INSTANTIATE(batch_norm_gradient);
GRADLOOM_INSTANTIATE(apply_dropout);

}  // namespace gradloom::kernels::rowwise
