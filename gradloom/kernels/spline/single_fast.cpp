// forward_single on SIMD: the basis of many inputs at once, then all their rows, with the weights of later inputs on
// their way from the cache.
// clang-format off
#define GRADLOOM_AVX512
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/spline/single_fast.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/elementary/simd-inl.h"
#include "gradloom/kernels/spline/basis-inl.h"
#include "gradloom/kernels/spline/degree-inl.h"
#include "gradloom/kernels/spline/knots-inl.h"
// clang-format on

#include <algorithm>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/spline/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::spline {
namespace HWY_NAMESPACE {

using kernels::HWY_NAMESPACE::WideTag;

inline constexpr std::size_t kInputsAtOnce = 64;

template <class T>
struct SinglePoints {
  alignas(64) T value[kInputsAtOnce * (kMaxDegree + 1)];  // (inputs, q)
  alignas(64) T base[kInputsAtOnce];
  std::uint16_t span[kInputsAtOnce];
};

// Inputs first .. first + count - 1.
template <int kDegree, class T>
HWY_INLINE void single_points(const Layer<T>& layer, const T* x, std::size_t first, std::size_t count,
                              SinglePoints<T>& points) {
  constexpr WideTag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  using V = hn::Vec<WideTag<T>>;
  using Ops = kernels::HWY_NAMESPACE::VectorOps<WideTag<T>>;
  const Shape& shape = layer.shape;
  const std::size_t q = basis_stride(kDegree ? kDegree : shape.degree);
  for (std::size_t n = 0; n < count; n += lanes) {  // arrays are padded to kPanel
    const std::size_t i = first + n;
    const V point = hn::LoadU(d, x + i);
    BasisVectors<kDegree, V> basis;
    hn::Mask<WideTag<T>> outside;
    const bool computed =
        shape.knots == Knots::uniform
            ? grid_points<kDegree, false>(
                  shape, point,
                  UniformPlace<V>{hn::LoadU(d, layer.grid.lo + i), hn::LoadU(d, layer.grid.hi + i),
                                  hn::LoadU(d, layer.grid.inverse_step + i)},
                  basis, outside)
            : grid_points<kDegree, false>(shape, point, place_of_inputs<kDegree, V>(layer, i), basis, outside);
    if (computed) {
      store_spans(basis.span, points.span + n);
      store_points(basis.value, q, points.value + n * q);
    } else {
      for (std::size_t l = 0; l < lanes && n + l < count; ++l) {
        const auto b = reference::GRADLOOM_TARGET_ARITHMETIC::basis_point(shape, layer.grid, i + l, x[i + l]);
        points.span[n + l] = static_cast<std::uint16_t>(b.span);
        std::copy_n(b.value.begin(), q, points.value + (n + l) * q);
      }
    }
    if (shape.base) {
      V value, slope;
      hn::Mask<WideTag<T>> beyond;
      const V inside =
          base_points(shape, point, hn::LoadU(d, layer.grid.lo + i), hn::LoadU(d, layer.grid.hi + i), beyond);
      kernels::HWY_NAMESPACE::elementary_silu(Ops{}, inside, &value, &slope);
      hn::StoreU(value, d, points.base + n);
    }
  }
}

template <int kDegree, bool kBase, std::size_t count, class T>
HWY_NOINLINE void single_rows(const Layer<T>& layer, const SinglePoints<T>& points, std::size_t first,
                              std::size_t inputs, std::size_t j, T* y) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), bytes = count * lanes * sizeof(T);
  using V = hn::Vec<Tag<T>>;
  const unsigned degree = kDegree ? kDegree : layer.shape.degree;
  const std::size_t q = basis_stride(degree), row_stride = layer.shape.out_padded();
  const std::size_t rows = layer.shape.rows(), input_stride = rows * row_stride;
  V acc[count];
  const T* start = first == 0 ? layer.bias ? layer.bias + j : nullptr : y + j;
  if (start) {
    unroll<count>([&](auto v) GRADLOOM_UNROLLED { acc[v] = hn::LoadU(d, start + v * lanes); });
  } else {
    unroll<count>([&](auto v) GRADLOOM_UNROLLED { acc[v] = hn::Zero(d); });
  }
  const T* weight = layer.weight + first * input_stride + j;
  const T* value = points.value;
  constexpr std::size_t kAhead = 3;
  for (std::size_t n = 0; n < inputs; ++n, weight += input_stride, value += q) {
    const T* row = weight + points.span[n] * row_stride;
    const T* ahead = weight;
    if (n + kAhead < inputs) ahead += kAhead * input_stride + points.span[n + kAhead] * row_stride;
    const auto add_row = [&](const T* from, T f) GRADLOOM_UNROLLED {
      const V factor = hn::Set(d, f);
      unroll<count>([&](auto v)
                        GRADLOOM_UNROLLED { acc[v] = mul_add(factor, hn::LoadU(d, from + v * lanes), acc[v]); });
      unroll<(bytes + 63) / 64>([&](auto line) GRADLOOM_UNROLLED { hwy::Prefetch(ahead + line * (64 / sizeof(T))); });
      ahead += row_stride;
    };
    if constexpr (kDegree != 0) {
      unroll<kDegree + 1>([&](auto k) GRADLOOM_UNROLLED {
        add_row(row, value[k]);
        row += row_stride;
      });
    } else {
      for (unsigned k = 0; k <= degree; ++k, row += row_stride) add_row(row, value[k]);
    }
    if constexpr (kBase) add_row(weight + (rows - 1) * row_stride, points.base[n]);
  }
  unroll<count>([&](auto v) GRADLOOM_UNROLLED { hn::StoreU(acc[v], d, y + j + v * lanes); });
}

template <int kDegree, bool kBase, class T>
void single_degree(const Layer<T>& layer, const T* x, T* y) {
  constexpr std::size_t lanes = hn::MaxLanes(Tag<T>());
  const Shape& shape = layer.shape;
  const std::size_t vectors = round_up(shape.out, kLanes) / lanes;
  SinglePoints<T> points;
  for (std::size_t first = 0; first == 0 || first < shape.in; first += kInputsAtOnce) {
    const std::size_t inputs = std::min(kInputsAtOnce, shape.in - first);
    single_points<kDegree>(layer, x, first, inputs, points);
    for (std::size_t v = 0; v < vectors;) {
      const std::size_t left = vectors - v, j = v * lanes;
      if (left >= 8) {
        single_rows<kDegree, kBase, 8>(layer, points, first, inputs, j, y);
        v += 8;
      } else if (left >= 4) {
        single_rows<kDegree, kBase, 4>(layer, points, first, inputs, j, y);
        v += 4;
      } else if (left == 3) {
        single_rows<kDegree, kBase, 3>(layer, points, first, inputs, j, y);
        v += 3;
      } else {
        single_rows<kDegree, kBase, 1>(layer, points, first, inputs, j, y);
        v += 1;
      }
    }
  }
  std::fill(y + vectors * lanes, y + shape.out_padded(), T(0));
}

template <class T>
void forward_single(const Layer<T>& layer, const T* x, T* y) {
  for_degree(layer.shape.degree, layer.shape.base,
             [&](auto degree, auto base) GRADLOOM_UNROLLED { single_degree<degree, base>(layer, x, y); });
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::spline {
GRADLOOM_EXPORT(forward_single);
}  // namespace gradloom::kernels::spline
#endif
