// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/reduce/reduce_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/reduce/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::reduce {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

template <class T>
T chunk_dot(const T* a, const T* b, std::size_t size) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = reference::kReduceLanes / lanes;
  using V = hn::Vec<Tag<T>>;
  V acc[parts];
  unroll<parts>([&](auto p) GRADLOOM_UNROLLED { acc[p] = hn::Zero(d); });
  std::size_t n = 0;
  for (; n + reference::kReduceLanes <= size; n += reference::kReduceLanes)
    unroll<parts>([&](auto p) GRADLOOM_UNROLLED {
      acc[p] = mul_add(hn::LoadU(d, a + n + p * lanes), hn::LoadU(d, b + n + p * lanes), acc[p]);
    });
  std::array<T, reference::kReduceLanes> sums;
  unroll<parts>([&](auto p) GRADLOOM_UNROLLED { hn::StoreU(acc[p], d, sums.data() + p * lanes); });
  for (std::size_t l = 0; n < size; ++n, ++l) sums[l] = mul_add(a[n], b[n], sums[l]);
  return reference::GRADLOOM_TARGET_ARITHMETIC::add_lanes(sums);
}

template <class T>
T chunk_max_abs(const T* a, std::size_t size) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  hn::Vec<Tag<T>> largest = hn::Zero(d);
  std::size_t n = 0;
  for (; n + lanes <= size; n += lanes) {
    const auto x = hn::Abs(hn::LoadU(d, a + n));
    largest = hn::IfThenElse(hn::Or(hn::Gt(x, largest), hn::Not(hn::Eq(x, x))), x, largest);
  }
  T each[lanes];
  hn::StoreU(largest, d, each);
  T result = reference::GRADLOOM_TARGET_ARITHMETIC::chunk_max_abs(a + n, size - n);
  for (const T x : each) result = reference::GRADLOOM_TARGET_ARITHMETIC::larger(result, x);
  return result;
}

template <class T>
void chunk_axpy(T factor, const T* HWY_RESTRICT x, T* HWY_RESTRICT y, std::size_t size) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  std::size_t n = 0;
  for (; n + lanes <= size; n += lanes)
    hn::StoreU(mul_add(hn::Set(d, factor), hn::LoadU(d, x + n), hn::LoadU(d, y + n)), d, y + n);
  for (; n < size; ++n) y[n] = mul_add(factor, x[n], y[n]);
}

template <class T>
void chunk_scale(T factor, T* x, std::size_t size) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  std::size_t n = 0;
  for (; n + lanes <= size; n += lanes) hn::StoreU(hn::Mul(hn::Set(d, factor), hn::LoadU(d, x + n)), d, x + n);
  for (; n < size; ++n) x[n] = factor * x[n];
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::reduce
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::reduce {
GRADLOOM_EXPORT(chunk_dot);
GRADLOOM_EXPORT(chunk_max_abs);
GRADLOOM_EXPORT(chunk_axpy);
GRADLOOM_EXPORT(chunk_scale);
}  // namespace gradloom::kernels::reduce
#endif
