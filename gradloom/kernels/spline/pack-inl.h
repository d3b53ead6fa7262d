// Copies of weights, and of differences of weights, compiled once per instruction set.
#if defined(GRADLOOM_KERNELS_SPLINE_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADLOOM_KERNELS_SPLINE_PACK_INL_H_
#undef GRADLOOM_KERNELS_SPLINE_PACK_INL_H_
#else
#define GRADLOOM_KERNELS_SPLINE_PACK_INL_H_
#endif

#include <hwy/highway.h>

#include "gradloom/kernels/simd-inl.h"
#include "gradloom/kernels/spline/spline.h"

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

// For each of `inputs` inputs the spline rows, each minus the one before it, then the base row: one less than its rows.
template <class T>
HWY_INLINE void pack_differences(const T* HWY_RESTRICT from, std::size_t stride, std::size_t inputs, const Shape& shape,
                                 std::size_t columns, T* HWY_RESTRICT to) {
  constexpr kernels::HWY_NAMESPACE::Tag<T> d;
  namespace hn = hwy::HWY_NAMESPACE;
  for (std::size_t i = 0; i < inputs; ++i, from += stride) {
    for (std::size_t r = 1; r < shape.spline_rows(); ++r, from += stride)
      for (std::size_t c = 0; c < columns; c += hn::MaxLanes(d), to += hn::MaxLanes(d))
        hn::StoreU(hn::Sub(hn::LoadU(d, from + stride + c), hn::LoadU(d, from + c)), d, to);
    if (!shape.base) continue;
    from += stride;
    pack_rows(from, stride, 1, columns, to);
    to += columns;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#endif  // per target
