// Lanes are outputs of an input.
// clang-format off
#define GRADLOOM_AVX512
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

// Vectors that are worked on at once: an edge is a long chain of sums, a root, a logarithm and a division, of which
// several have to be under way.
constexpr std::size_t kTogether = 4;

// f(vector, N, j): the vectors of `width` numbers from j on, N at once: wide ones as long as four of them fit.
template <class T, class F>
HWY_INLINE void each_vectors(std::size_t width, F&& f) {
  constexpr std::size_t wide = kTogether * hn::MaxLanes(WideTag<T>()), lanes = hn::MaxLanes(Tag<T>());
  static_assert(kTogether == 4);
  const auto some = [&](auto count, std::size_t& j) GRADLOOM_UNROLLED {
    f(Tag<T>(), count, j);
    j += count * lanes;
  };
  std::size_t j = 0;
  for (; j + wide <= width; j += wide) f(WideTag<T>(), std::integral_constant<std::size_t, kTogether>(), j);
  while (j + 4 * lanes <= width) some(std::integral_constant<std::size_t, 4>(), j);
  if (j + 3 * lanes <= width) some(std::integral_constant<std::size_t, 3>(), j);
  if (j + 2 * lanes <= width) some(std::integral_constant<std::size_t, 2>(), j);
  if (j < width) some(std::integral_constant<std::size_t, 1>(), j);
}

// N vectors of outputs of an input; w and at are the first's.
template <class D, std::size_t N, class T>
HWY_INLINE void vector_strengths(const spline::Shape& s, const T* w, std::size_t at, const Strengths<T>& out) {
  constexpr D d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  using V = hn::Vec<D>;
  const std::size_t pitch = s.out_padded(), rows = s.spline_rows();
  const V least = hn::Set(d, static_cast<T>(kLeastStrength * kLeastStrength));
  const V share = hn::Set(d, T(1) / static_cast<T>(rows));
  V mean[N], q[N];
  unroll<N>([&](auto n) GRADLOOM_UNROLLED { mean[n] = hn::LoadU(d, w + n * lanes); });
  for (std::size_t r = 1; r < rows; ++r)
    unroll<N>([&](auto n) GRADLOOM_UNROLLED { mean[n] = hn::Add(mean[n], hn::LoadU(d, w + r * pitch + n * lanes)); });
  unroll<N>([&](auto n) GRADLOOM_UNROLLED {
    mean[n] = hn::Mul(mean[n], share);
    q[n] = hn::Zero(d);
  });
  for (std::size_t r = 0; r < rows; ++r)
    unroll<N>([&](auto n) GRADLOOM_UNROLLED {
      const V c = hn::Sub(hn::LoadU(d, w + r * pitch + n * lanes), mean[n]);
      q[n] = mul_add(c, c, q[n]);
    });
  unroll<N>([&](auto n) GRADLOOM_UNROLLED {
    q[n] = mul_add(share, q[n], least);
    if (s.base) {
      const V u = hn::LoadU(d, w + rows * pitch + n * lanes);
      q[n] = mul_add(u, u, q[n]);
    }
    q[n] = hn::Sqrt(q[n]);
    hn::StoreU(mean[n], d, out.mean + at + n * lanes);
    hn::StoreU(q[n], d, out.strength + at + n * lanes);
  });
  unroll<N>([&](auto n) GRADLOOM_UNROLLED { q[n] = elementary_log(VectorOps<D>{}, q[n]); });
  unroll<N>([&](auto n) GRADLOOM_UNROLLED { hn::StoreU(q[n], d, out.logarithm + at + n * lanes); });
}

template <class T>
void strengths(const spline::Shape& s, const T* weight, spline::Range inputs, const Strengths<T>& out) {
  const std::size_t width = s.out_lanes();
  for (std::size_t i = inputs.begin; i < inputs.end; ++i) {
    const T* w = weight + i * s.rows() * s.out_padded();
    each_vectors<T>(width, [&](auto d, auto together, std::size_t j) GRADLOOM_UNROLLED {
      vector_strengths<decltype(d), together>(s, w + j, i * width + j, out);
    });
    sum_outputs(s.out, out.strength + i * width, out.logarithm + i * width, out.node + i, out.weighted + i);
  }
}

template <class D, std::size_t N, class T>
HWY_INLINE void add_vector_gradient(const spline::Shape& s, const T* w, std::size_t at, const Strengths<T>& strengths,
                                    T common_part, T slope_part, T* g) {
  constexpr D d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  using V = hn::Vec<D>;
  const std::size_t pitch = s.out_padded(), rows = s.spline_rows();
  const V share = hn::Set(d, T(1) / static_cast<T>(rows)), slope = hn::Set(d, slope_part);
  const V common = hn::Set(d, common_part);
  V f[N], part[N], mean[N];
  unroll<N>([&](auto n) GRADLOOM_UNROLLED {
    f[n] = hn::Div(neg_mul_add(slope, hn::LoadU(d, strengths.logarithm + at + n * lanes), common),
                   hn::LoadU(d, strengths.strength + at + n * lanes));
    part[n] = hn::Mul(f[n], share), mean[n] = hn::LoadU(d, strengths.mean + at + n * lanes);
  });
  for (std::size_t r = 0; r < rows; ++r)
    unroll<N>([&](auto n) GRADLOOM_UNROLLED {
      const std::size_t from = r * pitch + n * lanes;
      hn::StoreU(mul_add(part[n], hn::Sub(hn::LoadU(d, w + from), mean[n]), hn::LoadU(d, g + from)), d, g + from);
    });
  if (s.base)
    unroll<N>([&](auto n) GRADLOOM_UNROLLED {
      const std::size_t from = rows * pitch + n * lanes;
      hn::StoreU(mul_add(f[n], hn::LoadU(d, w + from), hn::LoadU(d, g + from)), d, g + from);
    });
}

template <class T>
void add_gradient(const spline::Shape& s, const T* weight, const Strengths<T>& strengths, const Slopes<T>& slopes,
                  spline::Range inputs, T* dl_dw) {
  const std::size_t width = s.out_lanes();
  for (std::size_t i = inputs.begin; i < inputs.end; ++i) {
    const std::size_t first = i * s.rows() * s.out_padded();
    each_vectors<T>(width, [&](auto d, auto together, std::size_t j) GRADLOOM_UNROLLED {
      add_vector_gradient<decltype(d), together>(s, weight + first + j, i * width + j, strengths, slopes.common[i],
                                                 slopes.slope, dl_dw + first + j);
    });
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
