// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/elementary/arrays.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/elementary/simd-inl.h"
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/elementary/arrays.h"

#include "gradloom/kernels/elementary/elementary.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels {
namespace HWY_NAMESPACE {

// vector(x) on whole vectors, scalar(x) on the rest.
template <class T, class F, class G>
HWY_INLINE void each(const T* x, T* y, std::size_t size, F&& vector, G&& scalar) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  std::size_t n = 0;
  for (; n + lanes <= size; n += lanes) hn::StoreU(vector(hn::LoadU(d, x + n)), d, y + n);
  for (; n < size; ++n) y[n] = scalar(x[n]);
}

template <class T>
HWY_INLINE void each_silu(const T* x, T* value, T* slope, std::size_t size) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  std::size_t n = 0;
  for (; n + lanes <= size; n += lanes) {
    hn::Vec<Tag<T>> v, s;
    elementary_silu(VectorOps<Tag<T>>{}, hn::LoadU(d, x + n), &v, &s);
    hn::StoreU(v, d, value + n);
    hn::StoreU(s, d, slope + n);
  }
  for (; n < size; ++n) {
    const auto r = kernels::silu(x[n]);
    value[n] = r.value, slope[n] = r.slope;
  }
}

#define GRADLOOM_DEFINE_ONE(f, T)                                                                            \
  void f##_##T(const T* x, T* y, std::size_t n) {                                                            \
    each(                                                                                                    \
        x, y, n, [](hn::Vec<Tag<T>> v) GRADLOOM_UNROLLED { return elementary_##f(VectorOps<Tag<T>>{}, v); }, \
        [](T v) GRADLOOM_UNROLLED { return kernels::f(v); });                                                \
  }
#define GRADLOOM_DEFINE(T)        \
  GRADLOOM_DEFINE_ONE(exp, T)     \
  GRADLOOM_DEFINE_ONE(log, T)     \
  GRADLOOM_DEFINE_ONE(sigmoid, T) \
  void silu_##T(const T* x, T* value, T* slope, std::size_t n) { each_silu(x, value, slope, n); }
GRADLOOM_DEFINE(float)
GRADLOOM_DEFINE(double)
#undef GRADLOOM_DEFINE
#undef GRADLOOM_DEFINE_ONE

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels {

#define GRADLOOM_EXPORT(f)                                                   \
  HWY_EXPORT(f##_float);                                                     \
  HWY_EXPORT(f##_double);                                                    \
  template <class T>                                                         \
  void f(Variant variant, std::span<const T> x, std::span<T> y) {            \
    if (variant == Variant::reference) {                                     \
      for (std::size_t n = 0; n < x.size(); ++n) y[n] = f(x[n]);             \
    } else if constexpr (std::is_same_v<T, float>) {                         \
      HWY_DYNAMIC_DISPATCH(f##_float)(x.data(), y.data(), x.size());         \
    } else {                                                                 \
      HWY_DYNAMIC_DISPATCH(f##_double)(x.data(), y.data(), x.size());        \
    }                                                                        \
  }                                                                          \
  template void f<float>(Variant, std::span<const float>, std::span<float>); \
  template void f<double>(Variant, std::span<const double>, std::span<double>);
GRADLOOM_EXPORT(exp)
GRADLOOM_EXPORT(log)
GRADLOOM_EXPORT(sigmoid)
#undef GRADLOOM_EXPORT

HWY_EXPORT(silu_float);
HWY_EXPORT(silu_double);
template <class T>
void silu(Variant variant, std::span<const T> x, std::span<T> value, std::span<T> slope) {
  if (variant == Variant::reference) {
    for (std::size_t n = 0; n < x.size(); ++n) {
      const auto r = silu(x[n]);
      value[n] = r.value, slope[n] = r.slope;
    }
  } else if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(silu_float)(x.data(), value.data(), slope.data(), x.size());
  } else {
    HWY_DYNAMIC_DISPATCH(silu_double)(x.data(), value.data(), slope.data(), x.size());
  }
}
template void silu<float>(Variant, std::span<const float>, std::span<float>, std::span<float>);
template void silu<double>(Variant, std::span<const double>, std::span<double>, std::span<double>);

}  // namespace gradloom::kernels
#endif
