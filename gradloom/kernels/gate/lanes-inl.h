// Sums over the 16 lanes of a row, compiled once per instruction set: the tree of gate.h.
#if defined(GRADLOOM_KERNELS_GATE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADLOOM_KERNELS_GATE_LANES_INL_H_
#undef GRADLOOM_KERNELS_GATE_LANES_INL_H_
#else
#define GRADLOOM_KERNELS_GATE_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include "gradloom/kernels/gate/gate.h"
#include "gradloom/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::gate {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// The first steps of the tree: the vectors of a row become one.
template <class T, class V>
HWY_INLINE V add_parts(const V* part) {
  constexpr std::size_t parts = kTile / hn::MaxLanes(Tag<T>());
  if constexpr (parts == 1) {
    return part[0];
  } else if constexpr (parts == 2) {
    return hn::Add(part[0], part[1]);
  } else {
    V sum[parts];
    for (std::size_t k = 0; k < parts; ++k) sum[k] = part[k];
    for (std::size_t half = parts / 2; half > 0; half /= 2)
      for (std::size_t k = 0; k < half; ++k) sum[k] = hn::Add(sum[k], sum[k + half]);
    return sum[0];
  }
}

// The rest of the tree, within a vector.
template <class T, class V>
HWY_INLINE T add_vector(V v) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  HWY_ALIGN T each[lanes];
  hn::Store(v, d, each);
  for (std::size_t half = lanes / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) each[l] = each[l] + each[l + half];
  return each[0];
}

template <class T, class V>
HWY_INLINE T add_lanes(const V* part) {
  return add_vector<T>(add_parts<T>(part));
}

// sums[m] += the rest of the tree of v_m.
template <class T, class V>
HWY_INLINE void accumulate_four(V v0, V v1, V v2, V v3, T* sums) {
#if HWY_TARGET == HWY_AVX2
  if constexpr (sizeof(T) == 4) {
    constexpr Tag<T> d;
    constexpr hn::Repartition<double, Tag<T>> wide;
    // +4: the halves of two vectors at once.
    const V x = hn::Add(hn::ConcatLowerLower(d, v1, v0), hn::ConcatUpperUpper(d, v1, v0));
    const V y = hn::Add(hn::ConcatLowerLower(d, v3, v2), hn::ConcatUpperUpper(d, v3, v2));
    // +2: pairs of numbers, so that each half holds two sums: 0 and 2 below, 1 and 3 above.
    const auto xw = hn::BitCast(wide, x), yw = hn::BitCast(wide, y);
    const V pairs =
        hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, xw, yw)), hn::BitCast(d, hn::InterleaveUpper(wide, xw, yw)));
    // +1.
    const V all = hn::Add(pairs, hn::Shuffle2301(pairs));
    constexpr hn::Half<Tag<T>> half;
    const auto four = hn::OddEven(hn::UpperHalf(half, all), hn::LowerHalf(half, all));
    hn::StoreU(hn::Add(hn::LoadU(half, sums), four), half, sums);
    return;
  }
#endif
  sums[0] = sums[0] + add_vector<T>(v0);
  sums[1] = sums[1] + add_vector<T>(v1);
  sums[2] = sums[2] + add_vector<T>(v2);
  sums[3] = sums[3] + add_vector<T>(v3);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::gate
HWY_AFTER_NAMESPACE();

#endif  // per target
