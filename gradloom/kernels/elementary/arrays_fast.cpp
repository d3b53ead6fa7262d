// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/elementary/arrays_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/elementary/simd-inl.h"
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/elementary/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::elementary {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// vector(x) on whole vectors, scalar(x) on the rest.
template <class T, class F, class G>
HWY_INLINE void each(std::span<const T> x, std::span<T> y, F&& vector, G&& scalar) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  std::size_t n = 0;
  for (; n + lanes <= x.size(); n += lanes) hn::StoreU(vector(hn::LoadU(d, x.data() + n)), d, y.data() + n);
  for (; n < x.size(); ++n) y[n] = scalar(x[n]);
}

template <class T>
void exp(std::span<const T> x, std::span<T> y) {
  each(
      x, y, [](hn::Vec<Tag<T>> v) GRADLOOM_UNROLLED { return elementary_exp(VectorOps<Tag<T>>{}, v); },
      [](T v) GRADLOOM_UNROLLED { return kernels::GRADLOOM_TARGET_ARITHMETIC::exp(v); });
}

template <class T>
void log(std::span<const T> x, std::span<T> y) {
  each(
      x, y, [](hn::Vec<Tag<T>> v) GRADLOOM_UNROLLED { return elementary_log(VectorOps<Tag<T>>{}, v); },
      [](T v) GRADLOOM_UNROLLED { return kernels::GRADLOOM_TARGET_ARITHMETIC::log(v); });
}

template <class T>
void sigmoid(std::span<const T> x, std::span<T> y) {
  each(
      x, y, [](hn::Vec<Tag<T>> v) GRADLOOM_UNROLLED { return elementary_sigmoid(VectorOps<Tag<T>>{}, v); },
      [](T v) GRADLOOM_UNROLLED { return kernels::GRADLOOM_TARGET_ARITHMETIC::sigmoid(v); });
}

template <class T>
void silu(std::span<const T> x, std::span<T> value, std::span<T> slope) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  std::size_t n = 0;
  for (; n + lanes <= x.size(); n += lanes) {
    hn::Vec<Tag<T>> v, s;
    elementary_silu(VectorOps<Tag<T>>{}, hn::LoadU(d, x.data() + n), &v, &s);
    hn::StoreU(v, d, value.data() + n);
    hn::StoreU(s, d, slope.data() + n);
  }
  for (; n < x.size(); ++n) {
    const auto r = kernels::GRADLOOM_TARGET_ARITHMETIC::silu(x[n]);
    value[n] = r.value, slope[n] = r.slope;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::elementary
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::elementary {
GRADLOOM_EXPORT(exp);
GRADLOOM_EXPORT(log);
GRADLOOM_EXPORT(sigmoid);
GRADLOOM_EXPORT(silu);
}  // namespace gradloom::kernels::elementary
#endif
