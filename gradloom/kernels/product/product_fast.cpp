// Lanes are the nodes of a sample. First factors stand where their product does; second factors are moved there, from
// two vectors.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/product/product_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include <algorithm>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/product/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::product {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

template <class T>
inline constexpr std::size_t kVector = hn::MaxLanes(Tag<T>());

// The elements of a sample in a panel matrix as vectors: number n begins with element n * kVector. Zeros before the
// first and behind the last.
template <class T>
struct Row {
  const T* matrix;
  std::size_t stride, sample, vectors;

  HWY_INLINE hn::Vec<Tag<T>> at(std::ptrdiff_t n) const {
    constexpr Tag<T> d;
    if (n < 0 || n >= static_cast<std::ptrdiff_t>(vectors)) return hn::Zero(d);
    return hn::LoadU(d, matrix + panel_at(static_cast<std::size_t>(n) * kVector<T>, sample, stride));
  }
};

// Elements that stand so many places further on, or back.
template <class T>
class Shift {
 public:
  HWY_INLINE explicit Shift(std::ptrdiff_t by) {
    constexpr Tag<T> d;
    constexpr auto lanes = static_cast<std::ptrdiff_t>(kVector<T>);
    const std::ptrdiff_t rest = ((by % lanes) + lanes) % lanes;
    whole_ = (by - rest) / lanes;
    hwy::MakeSigned<T> index[kVector<T>];
    for (std::ptrdiff_t c = 0; c < lanes; ++c) index[c] = static_cast<hwy::MakeSigned<T>>((c + rest) % lanes);
    index_ = hn::SetTableIndices(d, index);
    near_ = hn::FirstN(d, static_cast<std::size_t>(lanes - rest));
  }

  HWY_INLINE hn::Vec<Tag<T>> of(const Row<T>& row, std::size_t n) const {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(n) + whole_;
    return hn::IfThenElse(near_, hn::TableLookupLanes(row.at(first), index_),
                          hn::TableLookupLanes(row.at(first + 1), index_));
  }

 private:
  std::ptrdiff_t whole_;
  decltype(hn::SetTableIndices(Tag<T>(), static_cast<const hwy::MakeSigned<T>*>(nullptr))) index_;
  hn::Mask<Tag<T>> near_;
};

// The lanes of vector n that hold elements before `end`.
template <class T>
HWY_INLINE hn::Mask<Tag<T>> before(std::size_t end, std::size_t n) {
  const std::size_t first = n * kVector<T>;
  return hn::FirstN(Tag<T>(), end > first ? std::min(end - first, kVector<T>) : 0);
}

template <class T>
void forward(const LayerNodes& shape, std::size_t stride, spline::Range samples, const T* sums, T* nodes) {
  constexpr Tag<T> d;
  const std::size_t plain = shape.plain(), vectors = padded(shape.nodes) / kVector<T>;
  const Shift<T> second(static_cast<std::ptrdiff_t>(shape.products));
  for (std::size_t s = samples.begin; s < samples.end; ++s) {
    const Row<T> v{sums, stride, s, padded(shape.sums()) / kVector<T>};
    for (std::size_t n = 0; n < vectors; ++n) {
      auto z = v.at(static_cast<std::ptrdiff_t>(n));
      if ((n + 1) * kVector < T >> plain)
        z = hn::IfThenElse(before<T>(plain, n), z,
                           hn::IfThenElseZero(before<T>(shape.nodes, n), hn::Mul(z, second.of(v, n))));
      hn::StoreU(z, d, nodes + panel_at(n * kVector<T>, s, stride));
    }
  }
}

template <class T>
void backward(const LayerNodes& shape, std::size_t stride, spline::Range samples, const T* sums, const T* dl_dnodes,
              T* dl_dsums) {
  constexpr Tag<T> d;
  const std::size_t plain = shape.plain(), vectors = padded(shape.sums()) / kVector<T>;
  const auto products = static_cast<std::ptrdiff_t>(shape.products);
  const Shift<T> second(products), node(-products);
  for (std::size_t s = samples.begin; s < samples.end; ++s) {
    const Row<T> v{sums, stride, s, vectors}, g{dl_dnodes, stride, s, padded(shape.nodes) / kVector<T>};
    for (std::size_t n = 0; n < vectors; ++n) {
      auto dl_dv = g.at(static_cast<std::ptrdiff_t>(n));
      const std::size_t end = (n + 1) * kVector<T>;
      if (end > plain) dl_dv = hn::IfThenElse(before<T>(plain, n), dl_dv, hn::Mul(dl_dv, second.of(v, n)));
      if (end > shape.nodes)
        dl_dv = hn::IfThenElse(before<T>(shape.nodes, n), dl_dv,
                               hn::IfThenElseZero(before<T>(shape.sums(), n), hn::Mul(node.of(g, n), node.of(v, n))));
      hn::StoreU(dl_dv, d, dl_dsums + panel_at(n * kVector<T>, s, stride));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::product
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::product {
GRADLOOM_EXPORT(forward);
GRADLOOM_EXPORT(backward);
}  // namespace gradloom::kernels::product
#endif
