#include "gradloom/kernels/rowwise/rowwise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/elementary/elementary.h"

namespace gradloom::kernels::rowwise {

template <class T>
void activate(const Rows& r, Activation act, const T* x, const T* bias, const T* residual, T* y) {
  const auto each = [&](auto f) {
    for (std::size_t n = r.begin; n < r.end; ++n) {
      const T* __restrict from = x + n * r.stride;
      T* __restrict to = y + n * r.stride;
      if (bias)
        for (std::size_t c = 0; c < r.stride; ++c) to[c] = f(from[c] + bias[c]);
      else
        for (std::size_t c = 0; c < r.stride; ++c) to[c] = f(from[c]);
      if (residual)
        for (std::size_t c = 0; c < r.stride; ++c) to[c] = to[c] + residual[n * r.stride + c];
    }
  };
  if (act == Activation::none) each([](T v) { return v; });
  if (act == Activation::relu) each([](T v) { return v > T(0) ? v : T(0); });
  if (act == Activation::silu) each([](T v) { return split::silu(v).value; });
}

template <class T>
void activate_gradient(const Rows& r, Activation act, const T* x, const T* bias, const T* dl_dy, T* dl_dx) {
  const auto each = [&](auto slope) {
    for (std::size_t n = r.begin; n < r.end; ++n) {
      const T* __restrict from = x + n * r.stride;
      const T* __restrict g = dl_dy + n * r.stride;
      T* __restrict to = dl_dx + n * r.stride;
      if (bias)
        for (std::size_t c = 0; c < r.stride; ++c) to[c] = slope(from[c] + bias[c], g[c]);
      else
        for (std::size_t c = 0; c < r.stride; ++c) to[c] = slope(from[c], g[c]);
    }
  };
  if (act == Activation::none) each([](T, T g) { return g; });
  if (act == Activation::relu) each([](T v, T g) { return v > T(0) ? g : T(0); });
  if (act == Activation::silu) each([](T v, T g) { return g * split::silu(v).slope; });
}

template <class T>
void add(const Rows& r, const T* __restrict x, T* __restrict y) {
  for (std::size_t n = r.begin * r.stride; n < r.end * r.stride; ++n) y[n] = y[n] + x[n];
}

template <class T>
void layer_norm(const Rows& r, const LayerNorm<T>& n) {
  const T count = static_cast<T>(r.width);
  for (std::size_t i = r.begin; i < r.end; ++i) {
    const T* x = n.x + i * r.stride;
    T* y = n.y + i * r.stride;
    T mean = 0, variance = 0;
    for (std::size_t c = 0; c < r.width; ++c) mean = mean + x[c];
    mean = mean / count;
    for (std::size_t c = 0; c < r.width; ++c) variance = variance + (x[c] - mean) * (x[c] - mean);
    const T inverse = T(1) / std::sqrt(variance / count + static_cast<T>(kNormEpsilon));
    n.mean[i] = mean, n.inverse[i] = inverse;
    for (std::size_t c = 0; c < r.width; ++c) y[c] = (x[c] - mean) * inverse * n.gain[c] + n.shift[c];
    for (std::size_t c = r.width; c < r.stride; ++c) y[c] = T(0);
  }
}

template <class T>
void layer_norm_gradient(const Rows& r, const LayerNorm<T>& n, const T* dl_dy, T* dl_dx, T* dl_dgain, T* dl_dshift) {
  std::fill_n(dl_dgain, r.stride, T(0));
  std::fill_n(dl_dshift, r.stride, T(0));
  const T count = static_cast<T>(r.width);
  for (std::size_t i = r.begin; i < r.end; ++i) {
    const T *x = n.x + i * r.stride, *g = dl_dy + i * r.stride;
    T* to = dl_dx + i * r.stride;
    const T mean = n.mean[i], inverse = n.inverse[i];
    T sum = 0, product = 0;
    for (std::size_t c = 0; c < r.width; ++c) {
      const T xhat = (x[c] - mean) * inverse, d = g[c] * n.gain[c];
      sum = sum + d;
      product = product + d * xhat;
      dl_dgain[c] = dl_dgain[c] + g[c] * xhat;
      dl_dshift[c] = dl_dshift[c] + g[c];
    }
    sum = sum / count, product = product / count;
    for (std::size_t c = 0; c < r.width; ++c) {
      const T xhat = (x[c] - mean) * inverse;
      to[c] = inverse * (g[c] * n.gain[c] - sum - xhat * product);
    }
    for (std::size_t c = r.width; c < r.stride; ++c) to[c] = T(0);
  }
}

template <class T>
void squared_deviation(const Rows& r, const T* __restrict x, const T* __restrict mean, T* __restrict sums) {
  std::fill_n(sums, r.stride, T(0));
  for (std::size_t i = r.begin; i < r.end; ++i)
    for (std::size_t c = 0; c < r.stride; ++c) {
      const T d = x[i * r.stride + c] - mean[c];
      sums[c] = sums[c] + d * d;
    }
}

template <class T>
void batch_norm(const Rows& r, const BatchNorm<T>& n, T* __restrict y) {
  for (std::size_t i = r.begin; i < r.end; ++i)
    for (std::size_t c = 0; c < r.stride; ++c)
      y[i * r.stride + c] = (n.x[i * r.stride + c] - n.mean[c]) * n.inverse[c] * n.gain[c] + n.shift[c];
}

template <class T>
void batch_norm_sums(const Rows& r, const BatchNorm<T>& n, const T* __restrict dl_dy, T* __restrict dl_dgain,
                     T* __restrict dl_dshift) {
  std::fill_n(dl_dgain, r.stride, T(0));
  std::fill_n(dl_dshift, r.stride, T(0));
  for (std::size_t i = r.begin; i < r.end; ++i)
    for (std::size_t c = 0; c < r.stride; ++c) {
      const T g = dl_dy[i * r.stride + c];
      dl_dgain[c] = dl_dgain[c] + g * ((n.x[i * r.stride + c] - n.mean[c]) * n.inverse[c]);
      dl_dshift[c] = dl_dshift[c] + g;
    }
}

template <class T>
void batch_norm_gradient(const Rows& r, const BatchNorm<T>& n, const T* __restrict dl_dy, const T* mean_dy,
                         const T* mean_dy_xhat, T* __restrict dl_dx) {
  for (std::size_t i = r.begin; i < r.end; ++i)
    for (std::size_t c = 0; c < r.stride; ++c) {
      const std::size_t at = i * r.stride + c;
      const T factor = n.gain[c] * n.inverse[c];
      if (!mean_dy)
        dl_dx[at] = factor * dl_dy[at];
      else
        dl_dx[at] = factor * (dl_dy[at] - mean_dy[c] - ((n.x[at] - n.mean[c]) * n.inverse[c]) * mean_dy_xhat[c]);
    }
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
