// The basis functions at a vector of points, compiled once per instruction set. knots-inl.h has those of free knots.
#if defined(GRADLOOM_KERNELS_SPLINE_BASIS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADLOOM_KERNELS_SPLINE_BASIS_INL_H_
#undef GRADLOOM_KERNELS_SPLINE_BASIS_INL_H_
#else
#define GRADLOOM_KERNELS_SPLINE_BASIS_INL_H_
#endif

#include <hwy/highway.h>

#include <array>

#include "gradloom/kernels/simd-inl.h"
#include "gradloom/kernels/spline/spline.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::spline {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using kernels::HWY_NAMESPACE::Index;
using kernels::HWY_NAMESPACE::mul_add;
using kernels::HWY_NAMESPACE::pin;
using kernels::HWY_NAMESPACE::Tag;
using kernels::HWY_NAMESPACE::unroll;

// kDegree 0: any degree, given at run time.
template <int kDegree, class V>
struct BasisVectors {
  static constexpr std::size_t kSize = kDegree ? basis_stride(kDegree) : kMaxDegree + 1;
  V value[kSize], slope[kSize];  // slope: derivatives or factors, as in LayerTape
  V span;                        // a whole number
};

// One degree of the recursion: n[0..degree-1] holds degree - 1, becomes n[0..degree].
template <std::size_t degree, class V, class T>
HWY_INLINE void raise_degree(V t, T inverse_degree, V* n) {
  constexpr hn::DFromV<V> d;
  V saved = hn::Zero(d);
  unroll<degree>([&](auto r) GRADLOOM_UNROLLED {
    const V share = hn::Mul(n[r], hn::Set(d, inverse_degree));
    const V left = hn::Sub(hn::Set(d, T(r + 1)), t);
    n[r] = r == 0 ? hn::Mul(left, share) : mul_add(left, share, saved);
    saved = hn::Mul(r + 1 == degree ? t : hn::Add(t, hn::Set(d, T(degree - 1 - r))), share);
  });
  n[degree] = saved;
}

template <int kDegree, bool kSlope, class V, class T>
HWY_INLINE void uniform_basis(const Shape& shape, V t, V inverse_step, T, BasisVectors<kDegree, V>& out) {
  constexpr hn::DFromV<V> d;
  const unsigned degree = kDegree ? kDegree : shape.degree;
  V* n = out.value;
  n[0] = hn::Set(d, T(1));
  // Of degree p, from n of degree p - 1; each(f) calls f(0) .. f(p - 1).
  const auto slopes = [&](std::size_t p, auto&& each) GRADLOOM_UNROLLED {
    if (shape.row_differences()) {
      each([&](auto k) GRADLOOM_UNROLLED { out.slope[k] = hn::Mul(n[k], inverse_step); });
      out.slope[p] = hn::Zero(d);
      return;
    }
    out.slope[0] = hn::Mul(hn::Neg(n[0]), inverse_step);
    out.slope[p] = hn::Mul(n[p - 1], inverse_step);
    each([&](auto k) GRADLOOM_UNROLLED {
      if (k > 0) out.slope[k] = hn::Mul(hn::Sub(n[k > 0 ? k - 1 : 0], n[k]), inverse_step);
    });
  };
  if constexpr (kDegree != 0) {
    unroll<kDegree>([&](auto below) GRADLOOM_UNROLLED {
      constexpr std::size_t p = below + 1;
      if constexpr (p == kDegree && kSlope) {
        slopes(p, [](auto&& f) GRADLOOM_UNROLLED { unroll<p>(f); });
      }
      raise_degree<p>(t, T(1) / T(p), n);
    });
    unroll<BasisVectors<kDegree, V>::kSize>([&](auto k) GRADLOOM_UNROLLED {
      if constexpr (k > kDegree) out.value[k] = out.slope[k] = hn::Zero(d);
    });
  } else {
    for (std::size_t p = 1; p <= degree; ++p) {
      if (p == degree && kSlope) {
        slopes(p, [&](auto&& f) GRADLOOM_UNROLLED {
          for (std::size_t k = 0; k < p; ++k) f(k);
        });
      }
      const V inverse_degree = hn::Set(d, T(1) / T(p));
      V saved = hn::Zero(d);
      for (std::size_t r = 0; r < p; ++r) {
        const V share = hn::Mul(n[r], inverse_degree);
        const V left = hn::Sub(hn::Set(d, T(r + 1)), t);
        n[r] = r == 0 ? hn::Mul(left, share) : mul_add(left, share, saved);
        saved = hn::Mul(r + 1 == p ? t : hn::Add(t, hn::Set(d, T(p - 1 - r))), share);
      }
      n[p] = saved;
    }
    for (std::size_t k = degree + 1; k <= kMaxDegree; ++k) out.value[k] = out.slope[k] = hn::Zero(d);
  }
}

// Where the base branch is evaluated; `beyond` marks the points that `clamp` moves to an edge, where it does not vary.
template <class V, class M>
HWY_INLINE V base_points(const Shape& shape, V x, V lo, V hi, M& beyond) {
  const hn::DFromV<V> d;
  if (shape.outside != OutOfGrid::clamp) {
    beyond = hn::FirstN(d, 0);
    return x;
  }
  const auto below = hn::Lt(x, lo), above = hn::Gt(x, hi);
  beyond = hn::Or(below, above);
  return hn::IfThenElse(below, lo, hn::IfThenElse(above, hi, x));
}

// Where points lie on a uniform grid.
template <class V>
struct UniformPlace {
  V lo, hi, inverse_step;
  V intervals = {};  // from lo to each point

  template <int kDegree>
  HWY_INLINE V span_of(const Shape&, V x) {
    intervals = hn::Mul(hn::Sub(x, lo), inverse_step);
    return hn::Floor(intervals);
  }
  HWY_INLINE bool all_within(const Shape& shape, V, V span) const {
    constexpr hn::DFromV<V> d;
    const V last = hn::Set(d, static_cast<hn::TFromV<V>>(shape.grid - 1));
    return hn::AllTrue(d, hn::And(hn::Ge(span, hn::Zero(d)), hn::Le(span, last)));
  }
  template <int kDegree, bool kSlope>
  HWY_INLINE void basis(const Shape& shape, V, V span, BasisVectors<kDegree, V>& out) const {
    uniform_basis<kDegree, kSlope>(shape, hn::Sub(intervals, span), inverse_step, hn::TFromV<V>(0), out);
  }
};

// The points of one vector, on a place such as UniformPlace; `outside` marks those outside the grid. Returns false,
// with nothing computed, when a point needs the scalar code (policy extend, outside the grid).
template <int kDegree, bool kSlope, class Place, class V, class M>
HWY_INLINE bool grid_points(const Shape& shape, V x, Place place, BasisVectors<kDegree, V>& out, M& outside) {
  constexpr hn::DFromV<V> d;
  const M below = hn::Not(hn::Ge(x, place.lo)), above = hn::Gt(x, place.hi);
  outside = hn::Or(below, above);
  if (shape.outside == OutOfGrid::extend) {
    out.span = place.template span_of<kDegree>(shape, x);
    if (!place.all_within(shape, x, out.span)) return false;
    place.template basis<kDegree, kSlope>(shape, x, out.span, out);
    return true;
  }
  const V inside = hn::IfThenElse(below, place.lo, hn::IfThenElse(above, place.hi, x));
  const V last = hn::Set(d, static_cast<hn::TFromV<V>>(shape.grid - 1));
  out.span = hn::Min(hn::Max(place.template span_of<kDegree>(shape, inside), hn::Zero(d)), last);
  if (hn::AllFalse(d, outside)) {
    place.template basis<kDegree, kSlope>(shape, inside, out.span, out);
    return true;
  }
  place.template basis<kDegree, true>(shape, inside, out.span, out);
  const auto each = [&](auto&& f) GRADLOOM_UNROLLED {
    if constexpr (kDegree != 0) {
      unroll<kDegree + 1>(f);
    } else {
      for (std::size_t k = 0; k <= shape.degree; ++k) f(k);
    }
  };
  if (shape.outside == OutOfGrid::linear) {
    const V beyond = hn::Sub(x, inside);
    each([&](auto k) GRADLOOM_UNROLLED {
      V slope = out.slope[k];
      slope = hn::Sub(k > 0 ? out.slope[k > 0 ? k - 1 : 0] : hn::Zero(d), slope);
      out.value[k] = hn::IfThenElse(outside, mul_add(slope, beyond, out.value[k]), out.value[k]);
    });
  } else {
    const bool no_value = shape.outside == OutOfGrid::zero;
    each([&](auto k) GRADLOOM_UNROLLED {
      out.slope[k] = hn::IfThenZeroElse(outside, out.slope[k]);
      if (no_value) out.value[k] = hn::IfThenZeroElse(outside, out.value[k]);
    });
  }
  return true;
}

// Spans as integers: of a float, the low bits of its mantissa after adding 2^23 (ConvertTo would guard against
// overflow).
template <class V>
HWY_INLINE void store_spans(V span, std::uint16_t* to) {
  constexpr hn::DFromV<V> d;
  const hn::Rebind<std::int32_t, decltype(d)> d32;
  const hn::Rebind<std::uint16_t, decltype(d)> d16;
  if constexpr (std::is_same_v<hn::TFromV<V>, float>) {
    const auto bits = hn::BitCast(d32, hn::Add(span, hn::Set(d, 0x1p23f)));
    hn::StoreU(hn::DemoteTo(d16, hn::And(bits, hn::Set(d32, 0xffff))), d16, to);
  } else {
    hn::StoreU(hn::DemoteTo(d16, hn::DemoteTo(d32, span)), d16, to);
  }
}

#if HWY_TARGET <= HWY_AVX2
// Lanes 8 part .. 8 part + 7.
template <std::size_t part, class V>
HWY_INLINE hn::Vec<Tag<float>> octet_of(V v) {
  constexpr Tag<float> d;
  if constexpr (hn::MaxLanes(hn::DFromV<V>()) == 8)
    return v;
  else if constexpr (part == 0)
    return hn::LowerHalf(d, v);
  else
    return hn::UpperHalf(d, v);
}

// 8 x 8 numbers, rows become columns.
HWY_INLINE void transpose(const hn::Vec<Tag<float>>* in, hn::Vec<Tag<float>>* out) {
  constexpr Tag<float> d;
  const hn::Repartition<double, Tag<float>> d64;
  hn::Vec<Tag<float>> quads[8];  // quads[4 * half + c]: rows 4 half .. 4 half + 3 of column c | column c + 4
  unroll<2>([&](auto half) GRADLOOM_UNROLLED {
    const auto* r = in + 4 * half;
    const auto a = hn::BitCast(d64, hn::InterleaveLower(d, r[0], r[1])),
               b = hn::BitCast(d64, hn::InterleaveUpper(d, r[0], r[1]));
    const auto c = hn::BitCast(d64, hn::InterleaveLower(d, r[2], r[3])),
               e = hn::BitCast(d64, hn::InterleaveUpper(d, r[2], r[3]));
    quads[4 * half + 0] = hn::BitCast(d, hn::InterleaveLower(d64, a, c));
    quads[4 * half + 1] = hn::BitCast(d, hn::InterleaveUpper(d64, a, c));
    quads[4 * half + 2] = hn::BitCast(d, hn::InterleaveLower(d64, b, e));
    quads[4 * half + 3] = hn::BitCast(d, hn::InterleaveUpper(d64, b, e));
  });
  unroll<4>([&](auto c) GRADLOOM_UNROLLED {
    out[c] = hn::ConcatLowerLower(d, quads[4 + c], quads[c]);
    out[c + 4] = hn::ConcatUpperUpper(d, quads[4 + c], quads[c]);
  });
}
#endif

// The values of each point, q next to each other.
template <class V, class T>
HWY_INLINE void store_points(const V* values, std::size_t q, T* to) {
  constexpr hn::DFromV<V> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  if (q == 4) {
    hn::StoreInterleaved4(values[0], values[1], values[2], values[3], d, to);
    return;
  }
#if HWY_TARGET <= HWY_AVX2
  if constexpr (std::is_same_v<T, float>) {
    constexpr Tag<float> octet;
    hn::Vec<Tag<float>> columns[8], rows[8];
    unroll<lanes / 8>([&](auto part) GRADLOOM_UNROLLED {
      unroll<8>([&](auto k) GRADLOOM_UNROLLED { columns[k] = octet_of<part>(values[k]); });
      transpose(columns, rows);
      unroll<8>([&](auto r) GRADLOOM_UNROLLED { hn::StoreU(rows[r], octet, to + (8 * part + r) * 8); });
    });
    return;
  }
#endif
  for (std::size_t k = 0; k < q; ++k) {
    T column[lanes];
    hn::StoreU(values[k], d, column);
    for (std::size_t s = 0; s < lanes; ++s) to[s * q + k] = column[s];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#endif  // per target
