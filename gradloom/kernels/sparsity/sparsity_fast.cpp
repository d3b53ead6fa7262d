// Lanes are outputs of an input.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/sparsity/sparsity_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/elementary/simd-inl.h"
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/sparsity/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::sparsity {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// Numbers of T as doubles, as many as a vector of doubles has.
template <class T>
HWY_INLINE hn::Vec<Tag<double>> as_doubles(const T* from) {
  constexpr Tag<double> d;
  if constexpr (sizeof(T) == sizeof(double))
    return hn::LoadU(d, from);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, Tag<double>>(), from));
}

// The sums over outputs: whole groups of eight in vectors, the rest one by one.
template <class T>
HWY_INLINE void sum_outputs(std::size_t out, const T* strength, const T* logarithm, double* node, double* weighted) {
  constexpr Tag<double> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kSums / lanes;
  using V = hn::Vec<Tag<double>>;
  V n[parts], w[parts];
  unroll<parts>([&](auto p) GRADLOOM_UNROLLED { n[p] = w[p] = hn::Zero(d); });
  std::size_t j = 0;
  for (; j + kSums <= out; j += kSums)
    unroll<parts>([&](auto p) GRADLOOM_UNROLLED {
      const V s = as_doubles(strength + j + p * lanes);
      n[p] = hn::Add(n[p], s);
      w[p] = mul_add(s, as_doubles(logarithm + j + p * lanes), w[p]);
    });
  double nodes[kSums], weights[kSums];
  unroll<parts>([&](auto p) GRADLOOM_UNROLLED {
    hn::StoreU(n[p], d, nodes + p * lanes);
    hn::StoreU(w[p], d, weights + p * lanes);
  });
  for (std::size_t l = 0; j < out; ++j, ++l) {
    nodes[l] += static_cast<double>(strength[j]);
    weights[l] = mul_add(static_cast<double>(strength[j]), static_cast<double>(logarithm[j]), weights[l]);
  }
  *node = total_of(nodes), *weighted = total_of(weights);
}

template <class T>
void strengths(const spline::Shape& s, const T* weight, spline::Range inputs, const Strengths<T>& out) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  using V = hn::Vec<Tag<T>>;
  const std::size_t pitch = s.out_padded(), rows = s.spline_rows(), width = s.out_lanes();
  const V least = hn::Set(d, static_cast<T>(kLeastStrength * kLeastStrength));
  const V share = hn::Set(d, T(1) / static_cast<T>(rows));
  for (std::size_t i = inputs.begin; i < inputs.end; ++i) {
    for (std::size_t j = 0; j < width; j += lanes) {
      const T* w = weight + i * s.rows() * pitch + j;
      V mean = hn::LoadU(d, w);
      for (std::size_t r = 1; r < rows; ++r) mean = hn::Add(mean, hn::LoadU(d, w + r * pitch));
      mean = hn::Mul(mean, share);
      V q = hn::Zero(d);
      for (std::size_t r = 0; r < rows; ++r) {
        const V c = hn::Sub(hn::LoadU(d, w + r * pitch), mean);
        q = mul_add(c, c, q);
      }
      q = mul_add(share, q, least);
      if (s.base) {
        const V u = hn::LoadU(d, w + rows * pitch);
        q = mul_add(u, u, q);
      }
      const V strength = hn::Sqrt(q);
      hn::StoreU(mean, d, out.mean + i * width + j);
      hn::StoreU(strength, d, out.strength + i * width + j);
      hn::StoreU(elementary_log(VectorOps<Tag<T>>{}, strength), d, out.logarithm + i * width + j);
    }
    sum_outputs(s.out, out.strength + i * width, out.logarithm + i * width, out.node + i, out.weighted + i);
  }
}

template <class T>
void add_gradient(const spline::Shape& s, const T* weight, const Strengths<T>& strengths, const Slopes<T>& slopes,
                  spline::Range inputs, T* dl_dw) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  using V = hn::Vec<Tag<T>>;
  const std::size_t pitch = s.out_padded(), rows = s.spline_rows(), width = s.out_lanes();
  const V share = hn::Set(d, T(1) / static_cast<T>(rows)), slope = hn::Set(d, slopes.slope);
  for (std::size_t i = inputs.begin; i < inputs.end; ++i) {
    const V common = hn::Set(d, slopes.common[i]);
    for (std::size_t j = 0; j < width; j += lanes) {
      const std::size_t at = i * width + j, first = i * s.rows() * pitch + j;
      const T* w = weight + first;
      T* g = dl_dw + first;
      const V f = hn::Div(neg_mul_add(slope, hn::LoadU(d, strengths.logarithm + at), common),
                          hn::LoadU(d, strengths.strength + at));
      const V part = hn::Mul(f, share), mean = hn::LoadU(d, strengths.mean + at);
      for (std::size_t r = 0; r < rows; ++r)
        hn::StoreU(mul_add(part, hn::Sub(hn::LoadU(d, w + r * pitch), mean), hn::LoadU(d, g + r * pitch)), d,
                   g + r * pitch);
      if (s.base)
        hn::StoreU(mul_add(f, hn::LoadU(d, w + rows * pitch), hn::LoadU(d, g + rows * pitch)), d, g + rows * pitch);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::sparsity
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::sparsity {
GRADLOOM_EXPORT(strengths);
GRADLOOM_EXPORT(add_gradient);
}  // namespace gradloom::kernels::sparsity
#endif
