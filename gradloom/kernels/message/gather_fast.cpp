// Sums over neighbours; lanes are features, and the sums of a row stay in registers while its arcs pass.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/message/gather_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include <hwy/cache_control.h>

#include <algorithm>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/message/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::message {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

enum class Weights { none, some };

// Arcs [first, last) of a row, `parts` vectors of it from column f on, times `scale` into y.
template <Weights weights, std::size_t parts, class T>
HWY_INLINE void sum_part(const Gather<T>& g, std::size_t row, std::size_t first, std::size_t last, bool begins,
                         const T* scale, T* HWY_RESTRICT y, std::size_t f) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), kAhead = 8, kLine = 64 / sizeof(T);
  using V = hn::Vec<Tag<T>>;
  const T* HWY_RESTRICT x = g.x + f;
  const std::size_t stride = g.x_stride;
  const std::uint32_t* HWY_RESTRICT source = g.source;
  V sum[parts];
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED { sum[k] = hn::Zero(d); });
  if (begins && g.self != T(0)) {
    const V w = hn::Set(d, g.source_scale ? g.self * g.source_scale[row] : g.self);
    const T* from = x + row * stride;
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED { sum[k] = hn::Mul(w, hn::LoadU(d, from + k * lanes)); });
  }
  for (std::size_t e = first; e < last; ++e) {
    const T* from = x + (source ? source[e] : e) * stride;
    if (source && e + kAhead < last) {
      const T* next = x + source[e + kAhead] * stride;
      unroll<(parts * lanes + kLine - 1) / kLine>([&](auto k) GRADLOOM_UNROLLED { hwy::Prefetch(next + k * kLine); });
    }
    if constexpr (weights == Weights::none) {
      unroll<parts>([&](auto k) GRADLOOM_UNROLLED { sum[k] = hn::Add(sum[k], hn::LoadU(d, from + k * lanes)); });
    } else {
      const V w = hn::Set(d, g.factor(e));
      unroll<parts>([&](auto k) GRADLOOM_UNROLLED { sum[k] = mul_add(w, hn::LoadU(d, from + k * lanes), sum[k]); });
    }
  }
  if (scale) {
    const V r = hn::Set(d, *scale);
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED { sum[k] = hn::Mul(r, sum[k]); });
  }
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED { hn::StoreU(sum[k], d, y + f + k * lanes); });
}

template <Weights weights, class T>
HWY_INLINE void sum_row(const Gather<T>& g, std::size_t row, std::size_t first, std::size_t last, bool begins,
                        const T* scale, T* y) {
  constexpr std::size_t lanes = hn::MaxLanes(Tag<T>());
  std::size_t f = 0;
  for (; f + 8 * lanes <= g.width; f += 8 * lanes) sum_part<weights, 8>(g, row, first, last, begins, scale, y, f);
  for (; f + 4 * lanes <= g.width; f += 4 * lanes) sum_part<weights, 4>(g, row, first, last, begins, scale, y, f);
  for (; f + 2 * lanes <= g.width; f += 2 * lanes) sum_part<weights, 2>(g, row, first, last, begins, scale, y, f);
}

template <Weights weights, class T>
void rows_any(const Gather<T>& g, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t first = g.ptr[i], last = g.ptr[i + 1];
    if (last - first > kSegment) continue;
    sum_row<weights>(g, i, first, last, true, g.row_scale ? g.row_scale + i : nullptr, g.y + i * g.y_stride);
  }
}

template <class T>
void gather_rows(const Gather<T>& g, std::size_t begin, std::size_t end) {
  if (g.value || g.source_scale)
    rows_any<Weights::some>(g, begin, end);
  else
    rows_any<Weights::none>(g, begin, end);
}

template <class T>
void gather_segment(const Gather<T>& g, std::size_t row, std::size_t segment, T* sum) {
  const std::size_t first = g.ptr[row] + segment * kSegment;
  const std::size_t last = std::min<std::size_t>(g.ptr[row + 1], first + kSegment);
  const T* none = nullptr;
  if (g.value || g.source_scale)
    sum_row<Weights::some>(g, row, first, last, segment == 0, none, sum);
  else
    sum_row<Weights::none>(g, row, first, last, segment == 0, none, sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::message
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::message {
GRADLOOM_EXPORT(gather_rows);
GRADLOOM_EXPORT(gather_segment);
}  // namespace gradloom::kernels::message
#endif
