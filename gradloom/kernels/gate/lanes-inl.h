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

// sums[0], sums[1] += the tree of a row without its last step.
template <class T, class V>
HWY_INLINE void accumulate_partial(const V* part, T* sums) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  HWY_ALIGN T each[kTile];
  unroll<kTile / lanes>([&](auto k) GRADLOOM_UNROLLED { hn::Store(part[k], d, each + k * lanes); });
  for (std::size_t half = kTile / 2; half > 1; half /= 2)
    for (std::size_t l = 0; l < half; ++l) each[l] = each[l] + each[l + half];
  sums[0] = sums[0] + each[0], sums[1] = sums[1] + each[1];
}

#if HWY_TARGET <= HWY_AVX2
// What accumulate_four takes of a row: two vectors are added, one stays.
HWY_INLINE hn::Vec<Tag<float>> halves_of(const hn::Vec<Tag<float>> (&part)[2]) { return hn::Add(part[0], part[1]); }

// sums (4, 2) += the same of four rows, which are already added to vectors of 8 lanes.
HWY_INLINE void accumulate_four(hn::Vec<Tag<float>> v0, hn::Vec<Tag<float>> v1, hn::Vec<Tag<float>> v2,
                                hn::Vec<Tag<float>> v3, float* sums) {
  constexpr Tag<float> d;
  constexpr hn::Repartition<double, Tag<float>> wide;
  // +4: the halves of two vectors at once.
  const auto x = hn::Add(hn::ConcatLowerLower(d, v2, v0), hn::ConcatUpperUpper(d, v2, v0));
  const auto y = hn::Add(hn::ConcatLowerLower(d, v3, v1), hn::ConcatUpperUpper(d, v3, v1));
  // +2: pairs of numbers; each half of the result holds two sums.
  const auto xw = hn::BitCast(wide, x), yw = hn::BitCast(wide, y);
  const auto pairs =
      hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, xw, yw)), hn::BitCast(d, hn::InterleaveUpper(wide, xw, yw)));
  hn::StoreU(hn::Add(hn::LoadU(d, sums), pairs), d, sums);
}
#endif

#if HWY_TARGET <= HWY_AVX3
HWY_INLINE hn::Vec<WideTag<float>> halves_of(const hn::Vec<WideTag<float>> (&part)[1]) { return part[0]; }

// The same of four rows in a vector each. Every step adds parts of two vectors: one half of each stays where it is, the
// other halves are exchanged, which needs one shuffle.
HWY_INLINE void accumulate_four(hn::Vec<WideTag<float>> v0, hn::Vec<WideTag<float>> v1, hn::Vec<WideTag<float>> v2,
                                hn::Vec<WideTag<float>> v3, float* sums) {
  constexpr WideTag<float> d;
  constexpr hn::Repartition<double, WideTag<float>> wide;
  constexpr Tag<float> half;
  // +8: x holds rows 0 and 2, y rows 1 and 3.
  const auto x = hn::Add(hn::ConcatUpperLower(d, v2, v0), hn::ConcatLowerUpper(d, v2, v0));
  const auto y = hn::Add(hn::ConcatUpperLower(d, v3, v1), hn::ConcatLowerUpper(d, v3, v1));
  // +4: four numbers of each row.
  const auto fours =
      hn::BitCast(wide, hn::Add(hn::OddEvenBlocks(y, x), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(x, y))));
  // +2: two of each, in the even places of four.
  const auto pairs = hn::BitCast(wide, hn::Add(hn::BitCast(d, fours), hn::BitCast(d, hn::Shuffle01(fours))));
  const auto found = hn::LowerHalf(half, hn::BitCast(d, hn::ConcatEven(wide, pairs, pairs)));
  hn::StoreU(hn::Add(hn::LoadU(half, sums), found), half, sums);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::gate
HWY_AFTER_NAMESPACE();

#endif  // per target
