// The largest of the neighbours; lanes are columns.
// clang-format off
#define GRADLOOM_AVX512
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/message/maximum_fast.cpp"
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

// An arc's number in lanes as wide as those of T.
template <class T>
using ArcTag = hn::RebindToUnsigned<WideTag<T>>;
template <class T>
inline constexpr std::size_t kWide = hn::MaxLanes(WideTag<T>());

template <class T>
HWY_INLINE void store_arcs(hn::Vec<ArcTag<T>> arcs, std::uint32_t* HWY_RESTRICT to) {
  constexpr ArcTag<T> d;
  if constexpr (sizeof(T) == 4) {
    hn::StoreU(arcs, d, to);
  } else {
    HWY_ALIGN std::uint64_t each[kWide<T>];
    hn::Store(arcs, d, each);
    for (std::size_t l = 0; l < kWide<T>; ++l) to[l] = static_cast<std::uint32_t>(each[l]);
  }
}

template <class T>
HWY_INLINE hn::Vec<ArcTag<T>> load_arcs(const std::uint32_t* from) {
  constexpr ArcTag<T> d;
  if constexpr (sizeof(T) == 4)
    return hn::LoadU(d, from);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::uint32_t, ArcTag<T>>(), from));
}

// `parts` vectors from column f on of the largest of arcs [first, last), at least one.
template <std::size_t parts, class T>
HWY_INLINE void max_part(const Maximum<T>& m, std::size_t first, std::size_t last, std::size_t f, T* y,
                         std::uint32_t* winner) {
  constexpr WideTag<T> d;
  constexpr ArcTag<T> arcs;
  using TU = hn::TFromD<ArcTag<T>>;
  constexpr std::size_t kAhead = 8, kLine = 64 / sizeof(T);
  hn::Vec<WideTag<T>> largest[parts];
  hn::Vec<ArcTag<T>> from[parts];
  const T* x = m.x + m.source[first] * m.x_stride + f;
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
    largest[k] = hn::LoadU(d, x + k * kWide<T>);
    from[k] = hn::Set(arcs, static_cast<TU>(first));
  });
  for (std::size_t e = first + 1; e < last; ++e) {
    x = m.x + m.source[e] * m.x_stride + f;
    if (e + kAhead < last) {
      const T* next = m.x + m.source[e + kAhead] * m.x_stride + f;
      unroll<(parts * kWide<T> + kLine - 1) / kLine>([&](auto k)
                                                         GRADLOOM_UNROLLED { hwy::Prefetch(next + k * kLine); });
    }
    const auto arc = hn::Set(arcs, static_cast<TU>(e));
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      const auto v = hn::LoadU(d, x + k * kWide<T>);
      const auto wins = hn::Gt(v, largest[k]);
      largest[k] = hn::IfThenElse(wins, v, largest[k]);
      from[k] = hn::IfThenElse(hn::RebindMask(arcs, wins), arc, from[k]);
    });
  }
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
    hn::StoreU(largest[k], d, y + f + k * kWide<T>);
    store_arcs<T>(from[k], winner + f + k * kWide<T>);
  });
}

// part(Index<vectors>, column) for the columns of a row.
template <class T, class F>
HWY_INLINE void for_wide_columns(std::size_t width, F&& part) {
  std::size_t f = 0;
  for (; f + 4 * kWide<T> <= width; f += 4 * kWide<T>) part(Index<4>{}, f);
  for (; f < width; f += kWide<T>) part(Index<1>{}, f);
}

template <class T>
void max_rows(const Maximum<T>& m, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    T* y = m.y + i * m.stride;
    std::uint32_t* winner = m.winner + i * m.stride;
    const std::size_t first = m.ptr[i], last = m.ptr[i + 1];
    if (first == last) {
      std::fill_n(y, m.width, T(0));
      std::fill_n(winner, m.width, kNobody);
      continue;
    }
    for_wide_columns<T>(m.width, [&](auto parts, std::size_t f)
                                     GRADLOOM_UNROLLED { max_part<parts.value>(m, first, last, f, y, winner); });
  }
}

// `parts` vectors of dl_dx_j from column f on.
template <std::size_t parts, class T>
HWY_INLINE void max_gradient_part(const MaximumGradient<T>& m, std::size_t j, std::size_t f) {
  constexpr WideTag<T> d;
  constexpr ArcTag<T> arcs;
  T* to = m.dl_dx + j * m.dl_dx_stride + f;
  hn::Vec<WideTag<T>> sum[parts];
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED { sum[k] = hn::LoadU(d, to + k * kWide<T>); });
  for (std::size_t q = m.out_ptr[j]; q < m.out_ptr[j + 1]; ++q) {
    const std::size_t row = m.target[q] * m.stride + f;
    const auto slot = hn::Set(arcs, static_cast<hn::TFromD<ArcTag<T>>>(m.slot[q]));
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      const auto won = hn::Eq(load_arcs<T>(m.winner + row + k * kWide<T>), slot);
      const auto g = hn::LoadU(d, m.dl_dy + row + k * kWide<T>);
      sum[k] = hn::Add(sum[k], hn::IfThenElseZero(hn::RebindMask(d, won), g));
    });
  }
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED { hn::StoreU(sum[k], d, to + k * kWide<T>); });
}

template <class T>
void max_gradient_rows(const MaximumGradient<T>& m, std::size_t begin, std::size_t end) {
  for (std::size_t j = begin; j < end; ++j)
    for_wide_columns<T>(m.width,
                        [&](auto parts, std::size_t f) GRADLOOM_UNROLLED { max_gradient_part<parts.value>(m, j, f); });
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::message
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::message {
GRADLOOM_EXPORT(max_rows);
GRADLOOM_EXPORT(max_gradient_rows);
}  // namespace gradloom::kernels::message
#endif
