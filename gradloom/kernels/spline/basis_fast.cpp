// evaluate_basis on SIMD: lanes are samples of one input. Tails and points beyond an extended grid go through the
// scalar definition.
// clang-format off
#define GRADLOOM_AVX512
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/spline/basis_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/elementary/simd-inl.h"
#include "gradloom/kernels/spline/basis-inl.h"
#include "gradloom/kernels/spline/degree-inl.h"
#include "gradloom/kernels/spline/knots-inl.h"
// clang-format on

#include <algorithm>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/full_vectors.h"
#include "gradloom/kernels/spline/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::spline {
namespace HWY_NAMESPACE {

// One input, `count` samples from `s` on.
template <class T>
HWY_NOINLINE std::size_t scalar_points(const Layer<T>& layer, const LayerTape<T>& tape, std::size_t i, std::size_t s,
                                       std::size_t count) {
  std::size_t outside = 0;
  for (std::size_t n = 0; n < count; ++n)
    outside += reference::GRADLOOM_TARGET_ARITHMETIC::evaluate_point(layer, tape, i, s + n);
  return outside;
}

template <int kDegree, bool kSlope, class D, class T>
std::size_t basis_degree(D d, const Layer<T>& layer, const LayerTape<T>& tape, Range samples) {
  constexpr std::size_t lanes = hn::MaxLanes(d), inputs_at_once = 8;
  using V = hn::Vec<D>;
  using Ops = kernels::HWY_NAMESPACE::VectorOps<D>;
  const Shape shape = layer.shape;
  const std::size_t q = basis_stride(kDegree ? kDegree : shape.degree), stride = tape.pitch();
  const bool uniform = shape.knots == Knots::uniform;
  std::size_t outside_count = 0;
  for (std::size_t first = 0; first < shape.in; first += inputs_at_once) {
    const std::size_t inputs = std::min(inputs_at_once, shape.in - first);
    const T* x = tape.x + (first / kPanel) * stride * kPanel + first % kPanel;
    std::size_t s = samples.begin, done = 0;  // samples of this vector that the one before it has counted already
    for (; s + lanes <= samples.end; s += lanes) {
      alignas(64) T columns[inputs_at_once * lanes];  // (inputs, samples)
#if HWY_TARGET <= HWY_AVX2
      if constexpr (std::is_same_v<T, float>) {
        constexpr Tag<float> octet;
        unroll<lanes / 8>([&](auto part) GRADLOOM_UNROLLED {
          hn::Vec<Tag<float>> rows[8], turned[8];
          unroll<8>([&](auto r) GRADLOOM_UNROLLED { rows[r] = hn::LoadU(octet, x + (s + 8 * part + r) * kPanel); });
          transpose(rows, turned);
          unroll<8>([&](auto r) GRADLOOM_UNROLLED { hn::StoreU(turned[r], octet, columns + r * lanes + 8 * part); });
        });
      } else
#endif
      {
        for (std::size_t r = 0; r < lanes; ++r)
          for (std::size_t n = 0; n < inputs_at_once; ++n) columns[n * lanes + r] = x[(s + r) * kPanel + n];
      }
      for (std::size_t n = 0; n < inputs; ++n) {
        const std::size_t i = first + n, at = i * stride + s;
        const V point = hn::LoadU(d, columns + n * lanes);
        BasisVectors<kDegree, V> basis;
        hn::Mask<D> outside;
        const bool computed =
            uniform ? grid_points<kDegree, kSlope>(
                          shape, point,
                          UniformPlace<V>{hn::Set(d, layer.grid.lo[i]), hn::Set(d, layer.grid.hi[i]),
                                          hn::Set(d, layer.grid.inverse_step[i])},
                          basis, outside)
                    : grid_points<kDegree, kSlope>(shape, point, place_of_input<kDegree, V>(layer, i), basis, outside);
        if (!computed) {
          outside_count += scalar_points(layer, tape, i, s + done, lanes - done);
          continue;
        }
        outside_count += hn::CountTrue(d, hn::AndNot(hn::FirstN(d, done), outside));
        store_spans(basis.span, tape.span + at);
        store_points(basis.value, q, tape.value + at * q);
        if constexpr (kSlope) store_points(basis.slope, q, tape.slope + at * q);
        if (shape.base) {
          V value, slope;
          hn::Mask<D> beyond;
          const V inside =
              base_points(shape, point, hn::Set(d, layer.grid.lo[i]), hn::Set(d, layer.grid.hi[i]), beyond);
          kernels::HWY_NAMESPACE::elementary_silu(Ops{}, inside, &value, &slope);
          hn::StoreU(value, d, tape.base_value + at);
          if (tape.base_slope) hn::StoreU(hn::IfThenZeroElse(beyond, slope), d, tape.base_slope + at);
        }
      }
      // The last vector overlaps the one before it instead of leaving a tail.
      if (s + lanes < samples.end && s + 2 * lanes > samples.end) {
        done = s + 2 * lanes - samples.end;
        s -= done;
      }
    }
    if (s < samples.end)
      for (std::size_t n = 0; n < inputs; ++n)
        outside_count += scalar_points(layer, tape, first + n, s, samples.end - s);
  }
  return outside_count;
}

template <class T>
std::size_t evaluate_basis(const Layer<T>& layer, const LayerTape<T>& tape, Range samples) {
  return for_degree(layer.shape.degree, tape.slope != nullptr, [&](auto degree, auto slope) GRADLOOM_UNROLLED {
#if HWY_TARGET <= HWY_AVX3
    constexpr kernels::HWY_NAMESPACE::WideTag<T> wide;
    if (full_vectors() && samples.end - samples.begin >= hn::MaxLanes(wide))
      return basis_degree<degree, slope>(wide, layer, tape, samples);
#endif
    return basis_degree<degree, slope>(Tag<T>(), layer, tape, samples);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::spline {
GRADLOOM_EXPORT(evaluate_basis);
}  // namespace gradloom::kernels::spline
#endif
