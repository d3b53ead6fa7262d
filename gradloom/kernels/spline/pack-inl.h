// Copies of the weights of wide layers, compiled once per instruction set.
#if defined(GRADLOOM_KERNELS_SPLINE_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADLOOM_KERNELS_SPLINE_PACK_INL_H_
#undef GRADLOOM_KERNELS_SPLINE_PACK_INL_H_
#else
#define GRADLOOM_KERNELS_SPLINE_PACK_INL_H_
#endif

#include <hwy/highway.h>

#include "gradloom/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::spline {
namespace HWY_NAMESPACE {

// A part of each of many long rows falls into few sets of the first-level cache. A copy without gaps does not, and pays
// from this number of samples on.
inline constexpr std::size_t kManySamples = 16;
inline constexpr std::size_t kPackedBytes = 24 * 1024;

// Copies `rows` rows of `columns` numbers, a multiple of 8, next to each other.
template <class T>
HWY_INLINE void pack_rows(const T* HWY_RESTRICT from, std::size_t stride, std::size_t rows, std::size_t columns,
                          T* HWY_RESTRICT to) {
  constexpr kernels::HWY_NAMESPACE::Tag<T> d;
  namespace hn = hwy::HWY_NAMESPACE;
  for (std::size_t r = 0; r < rows; ++r, from += stride)
    for (std::size_t c = 0; c < columns; c += hn::MaxLanes(d), to += hn::MaxLanes(d))
      hn::StoreU(hn::LoadU(d, from + c), d, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#endif  // per target
