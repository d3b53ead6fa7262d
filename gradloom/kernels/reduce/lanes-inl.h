// Vectors of columns, and the tree of lanes.h over them; compiled once per instruction set.
#if defined(GRADLOOM_KERNELS_REDUCE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADLOOM_KERNELS_REDUCE_LANES_INL_H_
#undef GRADLOOM_KERNELS_REDUCE_LANES_INL_H_
#else
#define GRADLOOM_KERNELS_REDUCE_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include "gradloom/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels {
namespace HWY_NAMESPACE {

template <class T>
using Vector = hn::Vec<Tag<T>>;
template <class T>
inline constexpr std::size_t kVector = hn::MaxLanes(Tag<T>());

template <class T>
HWY_INLINE Vector<T> load(const T* from) {
  return hn::LoadU(Tag<T>(), from);
}
template <class T>
HWY_INLINE void store(Vector<T> v, T* to) {
  hn::StoreU(v, Tag<T>(), to);
}

// The tree within a vector: the upper half is added to the lower one.
template <class D>
HWY_INLINE hn::TFromD<D> add_halves([[maybe_unused]] D d, hn::Vec<D> v) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(d) > 1) {
    const hn::Half<D> half;
    return add_halves(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
#endif
  return hn::GetLane(v);
}

// The tree +4, +2, +1 over the vectors that hold 8 lanes.
template <class T>
HWY_INLINE T add_eight(const Vector<T>* lanes) {
  constexpr Tag<T> d;
  constexpr std::size_t parts = 8 / kVector<T>;
  if constexpr (parts == 1) {
    return add_halves(d, lanes[0]);
  } else if constexpr (parts == 2) {
    return add_halves(d, hn::Add(lanes[0], lanes[1]));
  } else if constexpr (parts == 4) {
    return add_halves(d, hn::Add(hn::Add(lanes[0], lanes[2]), hn::Add(lanes[1], lanes[3])));
  } else {
    const auto two = [&](std::size_t k) GRADLOOM_UNROLLED { return hn::Add(lanes[k], lanes[k + 4]); };
    return hn::GetLane(hn::Add(hn::Add(two(0), two(2)), hn::Add(two(1), two(3))));
  }
}

// sums[m] = that of lanes + m 8 / MaxLanes, for m < n.
template <std::size_t n, class T>
HWY_INLINE void add_lanes(const Vector<T>* lanes, T* sums) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (n == 4 && sizeof(T) == 4) {  // four at once, by transposing on the way
    constexpr Tag<T> d;
    constexpr hn::Repartition<double, Tag<T>> wide;
    const auto x = hn::Add(hn::ConcatLowerLower(d, lanes[2], lanes[0]), hn::ConcatUpperUpper(d, lanes[2], lanes[0]));
    const auto y = hn::Add(hn::ConcatLowerLower(d, lanes[3], lanes[1]), hn::ConcatUpperUpper(d, lanes[3], lanes[1]));
    const auto xw = hn::BitCast(wide, x), yw = hn::BitCast(wide, y);
    const auto pairs =
        hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, xw, yw)), hn::BitCast(d, hn::InterleaveUpper(wide, xw, yw)));
    HWY_ALIGN T each[8];
    hn::Store(hn::Add(pairs, hn::Shuffle2301(pairs)), d, each);
    unroll<4>([&](auto m) GRADLOOM_UNROLLED { sums[m] = each[2 * m]; });
    return;
  }
#endif
  unroll<n>([&](auto m) GRADLOOM_UNROLLED { sums[m] = add_eight<T>(lanes + m * (8 / kVector<T>)); });
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
