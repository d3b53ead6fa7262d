// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/reduce/reduce.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/reduce/reduce.h"

#include <algorithm>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/reduce/reference.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels {
namespace HWY_NAMESPACE {

template <class T>
HWY_INLINE T chunk_dot(const T* a, const T* b, std::size_t size) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = reference::kReduceLanes / lanes;
  using V = hn::Vec<Tag<T>>;
  V acc[parts];
  unroll<parts>([&](auto p) GRADLOOM_UNROLLED { acc[p] = hn::Zero(d); });
  std::size_t n = 0;
  for (; n + reference::kReduceLanes <= size; n += reference::kReduceLanes)
    unroll<parts>([&](auto p) GRADLOOM_UNROLLED {
      acc[p] = hn::Add(acc[p], hn::Mul(hn::LoadU(d, a + n + p * lanes), hn::LoadU(d, b + n + p * lanes)));
    });
  std::array<T, reference::kReduceLanes> sums;
  unroll<parts>([&](auto p) GRADLOOM_UNROLLED { hn::StoreU(acc[p], d, sums.data() + p * lanes); });
  for (std::size_t l = 0; n < size; ++n, ++l) sums[l] = sums[l] + a[n] * b[n];
  return reference::add_lanes(sums);
}

template <class T>
HWY_INLINE T chunk_max_abs(const T* a, std::size_t size) {
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
  T result = reference::chunk_max_abs(a + n, size - n);
  for (const T x : each) result = reference::larger(result, x);
  return result;
}

template <class T>
HWY_INLINE void chunk_axpy(T factor, const T* HWY_RESTRICT x, T* HWY_RESTRICT y, std::size_t size) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  std::size_t n = 0;
  for (; n + lanes <= size; n += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, y + n), hn::Mul(hn::Set(d, factor), hn::LoadU(d, x + n))), d, y + n);
  for (; n < size; ++n) y[n] = y[n] + factor * x[n];
}

template <class T>
HWY_INLINE void chunk_scale(T factor, T* x, std::size_t size) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  std::size_t n = 0;
  for (; n + lanes <= size; n += lanes) hn::StoreU(hn::Mul(hn::Set(d, factor), hn::LoadU(d, x + n)), d, x + n);
  for (; n < size; ++n) x[n] = factor * x[n];
}

#define GRADLOOM_DEFINE(T)                                                                        \
  T dot_##T(const T* a, const T* b, std::size_t size) { return chunk_dot(a, b, size); }           \
  T max_abs_##T(const T* a, std::size_t size) { return chunk_max_abs(a, size); }                  \
  void axpy_##T(T factor, const T* x, T* y, std::size_t size) { chunk_axpy(factor, x, y, size); } \
  void scale_##T(T factor, T* x, std::size_t size) { chunk_scale(factor, x, size); }
GRADLOOM_DEFINE(float)
GRADLOOM_DEFINE(double)
#undef GRADLOOM_DEFINE

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels {
HWY_EXPORT(dot_float);
HWY_EXPORT(dot_double);
HWY_EXPORT(max_abs_float);
HWY_EXPORT(max_abs_double);
HWY_EXPORT(axpy_float);
HWY_EXPORT(axpy_double);
HWY_EXPORT(scale_float);
HWY_EXPORT(scale_double);

namespace {

float fast_dot(const float* a, const float* b, std::size_t n) { return HWY_DYNAMIC_DISPATCH(dot_float)(a, b, n); }
double fast_dot(const double* a, const double* b, std::size_t n) { return HWY_DYNAMIC_DISPATCH(dot_double)(a, b, n); }
float fast_max_abs(const float* a, std::size_t n) { return HWY_DYNAMIC_DISPATCH(max_abs_float)(a, n); }
double fast_max_abs(const double* a, std::size_t n) { return HWY_DYNAMIC_DISPATCH(max_abs_double)(a, n); }
void fast_axpy(float f, const float* x, float* y, std::size_t n) { HWY_DYNAMIC_DISPATCH(axpy_float)(f, x, y, n); }
void fast_axpy(double f, const double* x, double* y, std::size_t n) { HWY_DYNAMIC_DISPATCH(axpy_double)(f, x, y, n); }
void fast_scale(float f, float* x, std::size_t n) { HWY_DYNAMIC_DISPATCH(scale_float)(f, x, n); }
void fast_scale(double f, double* x, std::size_t n) { HWY_DYNAMIC_DISPATCH(scale_double)(f, x, n); }

constexpr std::size_t kTask = 16 * kReduceChunk;  // elements that one thread takes at a time

// body(begin, end) on pieces of kTask elements.
template <class F>
void for_each_task(const Exec& exec, std::size_t size, F&& body) {
  exec.parallel_for(divide_up(size, kTask),
                    [&](std::size_t task, unsigned) { body(task * kTask, std::min(size, (task + 1) * kTask)); });
}

template <class T, class F, class G>
T reduce(const Exec& exec, std::size_t size, std::span<T> scratch, F&& chunk, G&& combine) {
  const std::size_t chunks = reduce_scratch(size);
  if (chunks == 0) return T(0);
  for_each_task(exec, size, [&](std::size_t begin, std::size_t end) {
    for (std::size_t n = begin; n < end; n += kReduceChunk)
      scratch[n / kReduceChunk] = chunk(n, std::min(kReduceChunk, end - n));
  });
  for (std::size_t stride = 1; stride < chunks; stride *= 2)
    for (std::size_t c = 0; c + stride < chunks; c += 2 * stride) scratch[c] = combine(scratch[c], scratch[c + stride]);
  return scratch[0];
}

}  // namespace

template <class T>
T dot(const Exec& exec, std::span<const T> a, std::span<const T> b, std::span<T> scratch) {
  const bool fast = exec.variant() == Variant::fast;
  const auto chunk = [&](std::size_t at, std::size_t n) {
    return fast ? fast_dot(a.data() + at, b.data() + at, n) : reference::chunk_dot(a.data() + at, b.data() + at, n);
  };
  return reduce<T>(exec, a.size(), scratch, chunk, [](T x, T y) { return x + y; });
}

template <class T>
T sum_of_squares(const Exec& exec, std::span<const T> a, std::span<T> scratch) {
  return dot(exec, a, a, scratch);
}

template <class T>
T max_abs(const Exec& exec, std::span<const T> a, std::span<T> scratch) {
  const bool fast = exec.variant() == Variant::fast;
  const auto chunk = [&](std::size_t at, std::size_t n) {
    return fast ? fast_max_abs(a.data() + at, n) : reference::chunk_max_abs(a.data() + at, n);
  };
  return reduce<T>(exec, a.size(), scratch, chunk, reference::larger<T>);
}

template <class T>
void axpy(const Exec& exec, T factor, std::span<const T> x, std::span<T> y) {
  const bool fast = exec.variant() == Variant::fast;
  for_each_task(exec, x.size(), [&](std::size_t begin, std::size_t end) {
    if (fast) return fast_axpy(factor, x.data() + begin, y.data() + begin, end - begin);
    for (std::size_t n = begin; n < end; ++n) y[n] = y[n] + factor * x[n];
  });
}

template <class T>
void scale(const Exec& exec, T factor, std::span<T> x) {
  const bool fast = exec.variant() == Variant::fast;
  for_each_task(exec, x.size(), [&](std::size_t begin, std::size_t end) {
    if (fast) return fast_scale(factor, x.data() + begin, end - begin);
    for (std::size_t n = begin; n < end; ++n) x[n] = factor * x[n];
  });
}

#define GRADLOOM_INSTANTIATE(T)                                                         \
  template T dot<T>(const Exec&, std::span<const T>, std::span<const T>, std::span<T>); \
  template T sum_of_squares<T>(const Exec&, std::span<const T>, std::span<T>);          \
  template T max_abs<T>(const Exec&, std::span<const T>, std::span<T>);                 \
  template void axpy<T>(const Exec&, T, std::span<const T>, std::span<T>);              \
  template void scale<T>(const Exec&, T, std::span<T>);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::kernels
#endif
