// Activation and normalisation; lanes are columns.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/rowwise/rows_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/elementary/simd-inl.h"
#include "gradloom/kernels/reduce/lanes-inl.h"
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/rowwise/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::rowwise {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// to[c] = f(from[c]) for the columns of each row; rows are whole vectors.
template <class T, class F>
HWY_INLINE void each_column(const Rows& r, F&& f) {
  for (std::size_t n = r.begin; n < r.end; ++n)
    for (std::size_t c = 0; c < r.stride; c += kVector<T>) f(n * r.stride + c, c);
}

// f(std::bool_constant) for a flag: no branch is left in the loops of f.
template <class F>
HWY_INLINE void if_known(bool flag, F&& f) {
  flag ? f(std::true_type()) : f(std::false_type());
}

template <class T, class F>
HWY_INLINE void activate_by(const Rows& r, const T* x, const T* bias, const T* residual, T* y, F&& f) {
  if_known(bias != nullptr, [&](auto has_bias) GRADLOOM_UNROLLED {
    if_known(residual != nullptr, [&](auto has_residual) GRADLOOM_UNROLLED {
      each_column<T>(r, [&](std::size_t at, std::size_t c) GRADLOOM_UNROLLED {
        Vector<T> v = load(x + at);
        if constexpr (has_bias) v = hn::Add(v, load(bias + c));
        v = f(v);
        if constexpr (has_residual) v = hn::Add(v, load(residual + at));
        store<T>(v, y + at);
      });
    });
  });
}

template <class T>
void activate(const Rows& r, Activation act, const T* x, const T* bias, const T* residual, T* y) {
  using V = Vector<T>;
  switch (act) {
    case Activation::none:
      return activate_by(r, x, bias, residual, y, [](V v) GRADLOOM_UNROLLED { return v; });
    case Activation::relu:
      return activate_by(r, x, bias, residual, y,
                         [](V v) GRADLOOM_UNROLLED { return hn::IfThenZeroElse(hn::Le(v, hn::Zero(Tag<T>())), v); });
    case Activation::silu:
      return activate_by(r, x, bias, residual, y, [](V v) GRADLOOM_UNROLLED {
        V value, slope;
        elementary_silu(VectorOps<Tag<T>>(), v, &value, &slope);
        return value;
      });
  }
}

template <class T, class F>
HWY_INLINE void slope_by(const Rows& r, const T* x, const T* bias, const T* dl_dy, T* dl_dx, F&& f) {
  if_known(bias != nullptr, [&](auto has_bias) GRADLOOM_UNROLLED {
    each_column<T>(r, [&](std::size_t at, std::size_t c) GRADLOOM_UNROLLED {
      Vector<T> v = load(x + at);
      if constexpr (has_bias) v = hn::Add(v, load(bias + c));
      store<T>(f(v, load(dl_dy + at)), dl_dx + at);
    });
  });
}

template <class T>
void activate_gradient(const Rows& r, Activation act, const T* x, const T* bias, const T* dl_dy, T* dl_dx) {
  using V = Vector<T>;
  switch (act) {
    case Activation::none:
      return slope_by(r, x, bias, dl_dy, dl_dx, [](V, V g) GRADLOOM_UNROLLED { return g; });
    case Activation::relu:
      return slope_by(r, x, bias, dl_dy, dl_dx,
                      [](V v, V g) GRADLOOM_UNROLLED { return hn::IfThenElseZero(hn::Gt(v, hn::Zero(Tag<T>())), g); });
    case Activation::silu:
      return slope_by(r, x, bias, dl_dy, dl_dx, [](V v, V g) GRADLOOM_UNROLLED {
        V value, slope;
        elementary_silu(VectorOps<Tag<T>>(), v, &value, &slope);
        return hn::Mul(g, slope);
      });
  }
}

// add(c, mask) for vectors from column c on of a row of `width` columns, in whole groups of 8; the mask tells which
// columns count, and is a constant before the last group.
template <class T, class F>
HWY_INLINE void for_groups(std::size_t width, F&& add) {
  constexpr Tag<T> d;
  constexpr std::size_t parts = 8 / kVector<T>;
  std::size_t c = 0;
  const auto all = hn::FirstN(d, kVector<T>);
  for (; c + 8 <= width; c += 8) unroll<parts>([&](auto k) GRADLOOM_UNROLLED { add(c + k * kVector<T>, k, all); });
  if (c == width) return;
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
    const std::size_t at = c + k * kVector<T>;
    add(at, k, hn::FirstN(d, std::min(kVector<T>, width - std::min(width, at))));
  });
}

template <class T>
void layer_norm(const Rows& r, const LayerNorm<T>& n) {
  constexpr Tag<T> d;
  constexpr std::size_t parts = 8 / kVector<T>;
  const T count = static_cast<T>(r.width);
  for (std::size_t i = r.begin; i < r.end; ++i) {
    const T* x = n.x + i * r.stride;
    T* y = n.y + i * r.stride;
    Vector<T> lanes[parts];
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED { lanes[k] = hn::Zero(d); });
    for_groups<T>(r.width, [&](std::size_t c, auto k, auto mask) GRADLOOM_UNROLLED {
      lanes[k] = hn::Add(lanes[k], hn::IfThenElseZero(mask, load(x + c)));
    });
    const T mean = add_eight<T>(lanes) / count;
    const Vector<T> means = hn::Set(d, mean);
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED { lanes[k] = hn::Zero(d); });
    for_groups<T>(r.width, [&](std::size_t c, auto k, auto mask) GRADLOOM_UNROLLED {
      const Vector<T> v = hn::IfThenElseZero(mask, hn::Sub(load(x + c), means));
      lanes[k] = mul_add(v, v, lanes[k]);
    });
    const T inverse = T(1) / std::sqrt(add_eight<T>(lanes) / count + static_cast<T>(kNormEpsilon));
    n.mean[i] = mean, n.inverse[i] = inverse;
    const Vector<T> inverses = hn::Set(d, inverse);
    for (std::size_t c = 0; c < r.width; c += kVector<T>)
      store<T>(mul_add(hn::Mul(hn::Sub(load(x + c), means), inverses), load(n.gain + c), load(n.shift + c)), y + c);
    std::fill(y + r.width, y + r.stride, T(0));
  }
}

template <class T>
void layer_norm_gradient(const Rows& r, const LayerNorm<T>& n, const T* dl_dy, T* dl_dx, T* dl_dgain, T* dl_dshift) {
  constexpr Tag<T> d;
  constexpr std::size_t parts = 8 / kVector<T>;
  std::fill_n(dl_dgain, r.stride, T(0));
  std::fill_n(dl_dshift, r.stride, T(0));
  const T count = static_cast<T>(r.width);
  for (std::size_t i = r.begin; i < r.end; ++i) {
    const T *x = n.x + i * r.stride, *g = dl_dy + i * r.stride;
    T* to = dl_dx + i * r.stride;
    const Vector<T> mean = hn::Set(d, n.mean[i]), inverse = hn::Set(d, n.inverse[i]);
    Vector<T> sums[parts], products[parts];
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED { sums[k] = products[k] = hn::Zero(d); });
    for_groups<T>(r.width, [&](std::size_t c, auto k, auto mask) GRADLOOM_UNROLLED {
      const Vector<T> xhat = hn::IfThenElseZero(mask, hn::Mul(hn::Sub(load(x + c), mean), inverse));
      const Vector<T> dy = hn::IfThenElseZero(mask, load(g + c));
      const Vector<T> scaled = hn::IfThenElseZero(mask, hn::Mul(dy, load(n.gain + c)));
      sums[k] = hn::Add(sums[k], scaled);
      products[k] = mul_add(scaled, xhat, products[k]);
      store<T>(mul_add(dy, xhat, load(dl_dgain + c)), dl_dgain + c);
      store<T>(hn::Add(load(dl_dshift + c), dy), dl_dshift + c);
    });
    const Vector<T> sum = hn::Set(d, add_eight<T>(sums) / count), product = hn::Set(d, add_eight<T>(products) / count);
    for (std::size_t c = 0; c < r.width; c += kVector<T>) {
      const Vector<T> xhat = hn::Mul(hn::Sub(load(x + c), mean), inverse);
      const Vector<T> centred = hn::Sub(hn::Mul(load(g + c), load(n.gain + c)), sum);
      store<T>(hn::Mul(inverse, neg_mul_add(xhat, product, centred)), to + c);
    }
    std::fill(to + r.width, to + r.stride, T(0));
  }
}

template <class T>
void squared_deviation(const Rows& r, const T* x, const T* mean, T* sums) {
  for (std::size_t c = 0; c < r.stride; c += kVector<T>) {
    const Vector<T> of_column = load(mean + c);
    Vector<T> sum = hn::Zero(Tag<T>());
    for (std::size_t i = r.begin; i < r.end; ++i) {
      const Vector<T> v = hn::Sub(load(x + i * r.stride + c), of_column);
      sum = mul_add(v, v, sum);
    }
    store<T>(sum, sums + c);
  }
}

// (x - mean) inverse at a place of x, in column c.
template <class T>
HWY_INLINE Vector<T> normal_at(const BatchNorm<T>& n, std::size_t at, std::size_t c) {
  return hn::Mul(hn::Sub(load(n.x + at), load(n.mean + c)), load(n.inverse + c));
}

template <class T>
void batch_norm(const Rows& r, const BatchNorm<T>& n, T* y) {
  each_column<T>(r, [&](std::size_t at, std::size_t c) GRADLOOM_UNROLLED {
    store<T>(mul_add(normal_at(n, at, c), load(n.gain + c), load(n.shift + c)), y + at);
  });
}

template <class T>
void batch_norm_sums(const Rows& r, const BatchNorm<T>& n, const T* dl_dy, T* dl_dgain, T* dl_dshift) {
  constexpr Tag<T> d;
  for (std::size_t c = 0; c < r.stride; c += kVector<T>) {
    const Vector<T> mean = load(n.mean + c), inverse = load(n.inverse + c);
    Vector<T> gain = hn::Zero(d), shift = hn::Zero(d);
    for (std::size_t i = r.begin; i < r.end; ++i) {
      const std::size_t at = i * r.stride + c;
      const Vector<T> g = load(dl_dy + at);
      gain = mul_add(g, hn::Mul(hn::Sub(load(n.x + at), mean), inverse), gain);
      shift = hn::Add(shift, g);
    }
    store<T>(gain, dl_dgain + c);
    store<T>(shift, dl_dshift + c);
  }
}

template <class T>
void batch_norm_gradient(const Rows& r, const BatchNorm<T>& n, const T* dl_dy, const T* mean_dy, const T* mean_dy_xhat,
                         T* dl_dx) {
  each_column<T>(r, [&](std::size_t at, std::size_t c) GRADLOOM_UNROLLED {
    const Vector<T> factor = hn::Mul(load(n.gain + c), load(n.inverse + c)), g = load(dl_dy + at);
    const Vector<T> centred =
        mean_dy ? neg_mul_add(normal_at(n, at, c), load(mean_dy_xhat + c), hn::Sub(g, load(mean_dy + c))) : g;
    store<T>(hn::Mul(factor, centred), dl_dx + at);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::rowwise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::rowwise {
GRADLOOM_EXPORT(activate);
GRADLOOM_EXPORT(activate_gradient);
GRADLOOM_EXPORT(layer_norm);
GRADLOOM_EXPORT(layer_norm_gradient);
GRADLOOM_EXPORT(squared_deviation);
GRADLOOM_EXPORT(batch_norm);
GRADLOOM_EXPORT(batch_norm_sums);
GRADLOOM_EXPORT(batch_norm_gradient);
}  // namespace gradloom::kernels::rowwise
#endif
