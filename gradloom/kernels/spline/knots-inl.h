// The basis functions on free knots at a vector of points, compiled once per instruction set.
#if defined(GRADLOOM_KERNELS_SPLINE_KNOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADLOOM_KERNELS_SPLINE_KNOTS_INL_H_
#undef GRADLOOM_KERNELS_SPLINE_KNOTS_INL_H_
#else
#define GRADLOOM_KERNELS_SPLINE_KNOTS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <bit>

#include "gradloom/kernels/simd-inl.h"
#include "gradloom/kernels/spline/basis-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::spline {
namespace HWY_NAMESPACE {

// f(0), ... f(count - 1); without a loop where count is a constant.
template <std::size_t count, class F>
HWY_INLINE void times(Index<count>, F&& f) {
  unroll<count>(f);
}
template <class F>
HWY_INLINE void times(std::size_t count, F&& f) {
  for (std::size_t k = 0; k < count; ++k) f(k);
}
// f(1), ... f(degree).
template <int kDegree, class F>
HWY_INLINE void each_degree([[maybe_unused]] std::size_t degree, F&& f) {
  if constexpr (kDegree != 0) {
    unroll<kDegree>([&](auto below) GRADLOOM_UNROLLED { f(Index<below + 1>()); });
  } else {
    for (std::size_t d = 1; d <= degree; ++d) f(d);
  }
}

// Where points lie between the knots of one input, or each between those of an input of its own. The knots around a
// point, and their inverse distances, are numbers that depend on its span alone; a few spans are told apart by
// comparing with each knot between them, many by a binary search, whose results are gathered.
template <int kMost, class V>
struct FreePlace {
  using D = hn::DFromV<V>;
  using T = hn::TFromV<V>;
  using DI = hn::RebindToSigned<D>;
  using VI = hn::Vec<DI>;
  static constexpr std::size_t kDegrees = kMost ? kMost : kMaxDegree;
  static constexpr unsigned kFewIntervals = 16;

  V lo, hi;
  const T *knots, *inverse;         // of one input
  bool same = true;                 // all lanes are points of that input
  VI knots_offset, inverse_offset;  // where the input of each lane has its own, from there
  V knot[2 * kDegrees] = {};        // those at left + 1 - p .. left + p, where left is the last one below a point
  V share[kDegrees * (kDegrees + 1) / 2] = {};  // inverse distances of degree d, from d (d - 1) / 2 on

  // f(array, number, offset) for each number that depends on the span; the array has that of span 0 first.
  template <int kDegree, class F>
  HWY_INLINE void each_number(const Shape& shape, F&& f) {
    const std::size_t p = kDegree ? kDegree : shape.degree;
    const T* first = knots + p + 1;
    const auto both = [&](auto d) GRADLOOM_UNROLLED {
      f(first + (d - 1), knot[d - 1], knots_offset);
      f(first + (p + d - 1), knot[p + d - 1], knots_offset);
      const T* of_degree = inverse + (d - 1) * shape.extended_knots() + 2 * p + 1 - d;
      times(d, [&](auto r) GRADLOOM_UNROLLED { f(of_degree + r, share[d * (d - 1) / 2 + r], inverse_offset); });
    };
    each_degree<kDegree>(p, both);
  }

  template <int kDegree>
  HWY_INLINE V span_of(const Shape& shape, V x) {
    constexpr D d;
    constexpr DI di;
    const T* interior = knots + 2 * (kDegree ? kDegree : shape.degree);  // numbers 1 .. G - 1 lie between spans
    if (same && shape.grid <= kFewIntervals) {
      V span = hn::Zero(d);
      each_number<kDegree>(shape, [&](const T* from, V& to, VI) GRADLOOM_UNROLLED { to = hn::Set(d, from[0]); });
      for (unsigned k = 1; k < shape.grid; ++k) {
        const auto beyond = hn::Ge(x, hn::Set(d, interior[k]));
        span = hn::IfThenElse(beyond, hn::Set(d, static_cast<T>(k)), span);
        each_number<kDegree>(shape, [&](const T* from, V& to, VI)
                                        GRADLOOM_UNROLLED { to = hn::IfThenElse(beyond, hn::Set(d, from[k]), to); });
      }
      return span;
    }
    const unsigned most = shape.grid - 1;
    VI span = hn::Zero(di);
    for (unsigned step = std::bit_floor(most); step > 0; step /= 2) {
      const VI next = hn::Add(span, hn::Set(di, static_cast<hn::TFromD<DI>>(step)));
      const VI last = hn::Set(di, static_cast<hn::TFromD<DI>>(most));
      const VI known = hn::Min(next, last);
      const V at = hn::GatherIndex(d, interior, hn::Add(known, knots_offset));
      span = hn::IfThenElse(hn::And(hn::Eq(next, known), hn::RebindMask(di, hn::Ge(x, at))), next, span);
    }
    each_number<kDegree>(shape, [&](const T* from, V& to, VI offset)
                                    GRADLOOM_UNROLLED { to = hn::GatherIndex(d, from, hn::Add(span, offset)); });
    return hn::ConvertTo(d, span);
  }

  HWY_INLINE bool all_within(const Shape& shape, V x, V) const {
    constexpr D d;
    const T* first = knots + 2 * shape.degree;
    const V low = hn::GatherIndex(d, first, knots_offset), high = hn::GatherIndex(d, first + shape.grid, knots_offset);
    return hn::AllTrue(d, hn::And(hn::Ge(x, low), hn::Lt(x, high)));
  }

  template <int kDegree, bool kSlope>
  HWY_INLINE void basis(const Shape& shape, V x, V, BasisVectors<kDegree, V>& out) const {
    constexpr D d;
    const std::size_t p = kDegree ? kDegree : shape.degree;
    V* n = out.value;
    n[0] = hn::Set(d, T(1));
    each_degree<kDegree>(p, [&](auto degree) GRADLOOM_UNROLLED {
      V part[kDegrees];
      times(degree, [&](auto r) GRADLOOM_UNROLLED { part[r] = hn::Mul(n[r], share[degree * (degree - 1) / 2 + r]); });
      if (kSlope && degree == p) {
        const V factor = hn::Set(d, static_cast<T>(p));
        if (shape.row_differences()) {
          times(degree, [&](auto k) GRADLOOM_UNROLLED { out.slope[k] = hn::Mul(part[k], factor); });
          out.slope[p] = hn::Zero(d);
        } else {
          times(degree, [&](auto k) GRADLOOM_UNROLLED {
            const V change = k > 0 ? hn::Sub(part[k > 0 ? k - 1 : 0], part[k]) : hn::Neg(part[0]);
            out.slope[k] = hn::Mul(change, factor);
          });
          out.slope[p] = hn::Mul(part[p - 1], factor);
        }
      }
      V saved = hn::Zero(d);
      times(degree, [&](auto r) GRADLOOM_UNROLLED {
        n[r] = mul_add(hn::Sub(knot[p + r], x), part[r], saved);
        saved = hn::Mul(hn::Sub(x, knot[p + r - degree]), part[r]);
      });
      n[degree] = saved;
    });
    constexpr std::size_t size = BasisVectors<kDegree, V>::kSize;
    for (std::size_t k = p + 1; k < size; ++k) out.value[k] = out.slope[k] = hn::Zero(d);
  }
};

// Points of input i alone.
template <int kDegree, class V, class T>
HWY_INLINE FreePlace<kDegree, V> place_of_input(const Layer<T>& layer, std::size_t i) {
  using Place = FreePlace<kDegree, V>;
  constexpr typename Place::D d;
  const std::size_t knots = layer.shape.extended_knots();
  const auto zero = hn::Zero(typename Place::DI());
  return {hn::Set(d, layer.grid.lo[i]),
          hn::Set(d, layer.grid.hi[i]),
          layer.grid.extended + i * knots,
          layer.grid.inverse + i * layer.shape.degree * knots,
          true,
          zero,
          zero};
}

// A point of each of the inputs from i on; lanes beyond the last input have its knots.
template <int kDegree, class V, class T>
HWY_INLINE FreePlace<kDegree, V> place_of_inputs(const Layer<T>& layer, std::size_t i) {
  using Place = FreePlace<kDegree, V>;
  constexpr typename Place::D d;
  constexpr typename Place::DI di;
  using I = hn::TFromD<typename Place::DI>;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  const std::size_t knots = layer.shape.extended_knots();
  I knots_offset[lanes], inverse_offset[lanes];
  for (std::size_t l = 0; l < lanes; ++l) {
    const std::size_t after = std::min(l, layer.shape.in - 1 - i);
    knots_offset[l] = static_cast<I>(after * knots);
    inverse_offset[l] = static_cast<I>(after * layer.shape.degree * knots);
  }
  return {hn::LoadU(d, layer.grid.lo + i),
          hn::LoadU(d, layer.grid.hi + i),
          layer.grid.extended + i * knots,
          layer.grid.inverse + i * layer.shape.degree * knots,
          false,
          hn::LoadU(di, knots_offset),
          hn::LoadU(di, inverse_offset)};
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#endif  // per target
