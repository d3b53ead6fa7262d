// The definition of what rowwise.h computes with numbers.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_ROWWISE_REFERENCE_H_
#define GRADLOOM_KERNELS_ROWWISE_REFERENCE_H_

#include <algorithm>
#include <cmath>

#include "gradloom/kernels/elementary/elementary.h"
#include "gradloom/kernels/reduce/lanes.h"
#include "gradloom/kernels/rowwise/rowwise.h"

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/rowwise/reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::rowwise::reference::GRADLOOM_ARITHMETIC {

using kernels::GRADLOOM_ARITHMETIC::lane_sum;
using kernels::GRADLOOM_ARITHMETIC::mul_add;
using kernels::GRADLOOM_ARITHMETIC::neg_mul_add;
using kernels::GRADLOOM_ARITHMETIC::silu;

template <class T>
void activate(const Rows& r, Activation act, const T* x, const T* bias, const T* residual, T* y) {
  const auto each = [&](auto f) GRADLOOM_ARITHMETIC_ATTR {
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
  if (act == Activation::none) each([](T v) GRADLOOM_ARITHMETIC_ATTR { return v; });
  if (act == Activation::relu) each([](T v) GRADLOOM_ARITHMETIC_ATTR { return v <= T(0) ? T(0) : v; });
  if (act == Activation::silu) each([](T v) GRADLOOM_ARITHMETIC_ATTR { return silu(v).value; });
}

template <class T>
void activate_gradient(const Rows& r, Activation act, const T* x, const T* bias, const T* dl_dy, T* dl_dx) {
  const auto each = [&](auto slope) GRADLOOM_ARITHMETIC_ATTR {
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
  if (act == Activation::none) each([](T, T g) GRADLOOM_ARITHMETIC_ATTR { return g; });
  if (act == Activation::relu) each([](T v, T g) GRADLOOM_ARITHMETIC_ATTR { return v > T(0) ? g : T(0); });
  if (act == Activation::silu) each([](T v, T g) GRADLOOM_ARITHMETIC_ATTR { return g * silu(v).slope; });
}

template <class T>
void layer_norm(const Rows& r, const LayerNorm<T>& n) {
  const T count = static_cast<T>(r.width);
  for (std::size_t i = r.begin; i < r.end; ++i) {
    const T* x = n.x + i * r.stride;
    T* y = n.y + i * r.stride;
    const T mean = lane_sum(0, r.width, [&](std::size_t c) GRADLOOM_ARITHMETIC_ATTR { return x[c]; }) / count;
    const auto deviation = [&](std::size_t c) GRADLOOM_ARITHMETIC_ATTR { return x[c] - mean; };
    const T variance = lane_sum(0, r.width, deviation, deviation) / count;
    const T inverse = T(1) / std::sqrt(variance + static_cast<T>(kNormEpsilon));
    n.mean[i] = mean, n.inverse[i] = inverse;
    for (std::size_t c = 0; c < r.width; ++c) y[c] = mul_add((x[c] - mean) * inverse, n.gain[c], n.shift[c]);
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
    const auto xhat = [&](std::size_t c) GRADLOOM_ARITHMETIC_ATTR { return (x[c] - mean) * inverse; };
    const auto scaled = [&](std::size_t c) GRADLOOM_ARITHMETIC_ATTR { return g[c] * n.gain[c]; };
    const T sum = lane_sum(0, r.width, scaled) / count, product = lane_sum(0, r.width, scaled, xhat) / count;
    for (std::size_t c = 0; c < r.width; ++c) {
      dl_dgain[c] = mul_add(g[c], xhat(c), dl_dgain[c]);
      dl_dshift[c] = dl_dshift[c] + g[c];
      to[c] = inverse * neg_mul_add(xhat(c), product, scaled(c) - sum);
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
      sums[c] = mul_add(d, d, sums[c]);
    }
}

template <class T>
void batch_norm(const Rows& r, const BatchNorm<T>& n, T* __restrict y) {
  for (std::size_t i = r.begin; i < r.end; ++i)
    for (std::size_t c = 0; c < r.stride; ++c)
      y[i * r.stride + c] = mul_add((n.x[i * r.stride + c] - n.mean[c]) * n.inverse[c], n.gain[c], n.shift[c]);
}

template <class T>
void batch_norm_sums(const Rows& r, const BatchNorm<T>& n, const T* __restrict dl_dy, T* __restrict dl_dgain,
                     T* __restrict dl_dshift) {
  std::fill_n(dl_dgain, r.stride, T(0));
  std::fill_n(dl_dshift, r.stride, T(0));
  for (std::size_t i = r.begin; i < r.end; ++i)
    for (std::size_t c = 0; c < r.stride; ++c) {
      const T g = dl_dy[i * r.stride + c];
      dl_dgain[c] = mul_add(g, (n.x[i * r.stride + c] - n.mean[c]) * n.inverse[c], dl_dgain[c]);
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
        dl_dx[at] = factor * neg_mul_add((n.x[at] - n.mean[c]) * n.inverse[c], mean_dy_xhat[c], dl_dy[at] - mean_dy[c]);
    }
}

}  // namespace gradloom::kernels::rowwise::reference::GRADLOOM_ARITHMETIC

#endif
