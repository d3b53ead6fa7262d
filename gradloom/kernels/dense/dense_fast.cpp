// The dense product; lanes are columns of y, and a few rows share each load of w.
// clang-format off
#define GRADLOOM_AVX512
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/dense/dense_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/dense/fast.h"
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/full_vectors.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::dense {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// `rows` rows of y, `parts` vectors wide.
template <class D, std::size_t parts, std::size_t rows, class T>
HWY_INLINE void block(const Product<T>& p, std::size_t row, std::size_t f) {
  constexpr D d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  using V = hn::Vec<D>;
  T* y = p.y + row * p.y_stride + f;
  const std::size_t y_stride = p.y_stride, w_stride = p.w_stride, x_row = p.x_row, x_inner = p.x_inner;
  V sum[rows * parts];
  const auto each = [&](auto&& work) GRADLOOM_UNROLLED {
    unroll<rows>([&](auto r) GRADLOOM_UNROLLED {
      unroll<parts>([&](auto c) GRADLOOM_UNROLLED { work(r, sum[r * parts + c], c * lanes); });
    });
  };
  each([&](auto r, V& v, std::size_t c) GRADLOOM_UNROLLED {
    v = hn::Zero(d);
    if (p.start == Start::bias) v = hn::LoadU(d, p.bias + f + c);
    if (p.start == Start::y) v = hn::LoadU(d, y + r * y_stride + c);
  });
  const T* x = p.x + row * x_row;
  const T* w = p.w + f;
  for (std::size_t k = p.inner; k > 0; --k, x += x_inner, w += w_stride) {
    V weight[parts];
    unroll<parts>([&](auto c) GRADLOOM_UNROLLED { weight[c] = hn::LoadU(d, w + c * lanes); });
    unroll<rows>([&](auto r) GRADLOOM_UNROLLED {
      const V v = hn::Set(d, x[r * x_row]);
      unroll<parts>([&](auto c) GRADLOOM_UNROLLED { sum[r * parts + c] = mul_add(v, weight[c], sum[r * parts + c]); });
    });
  }
  if (p.start == Start::apart)
    each([&](auto r, V& v, std::size_t c) GRADLOOM_UNROLLED { v = hn::Add(hn::LoadU(d, y + r * y_stride + c), v); });
  each([&](auto r, V& v, std::size_t c) GRADLOOM_UNROLLED { hn::StoreU(v, d, y + r * y_stride + c); });
}

template <class D, std::size_t parts, class T>
HWY_INLINE void block_of(const Product<T>& p, std::size_t rows, std::size_t row, std::size_t f) {
  if (rows == 6) block<D, parts, 6>(p, row, f);
  if (rows == 4) block<D, parts, 4>(p, row, f);
  if (rows == 2) block<D, parts, 2>(p, row, f);
  if (rows == 1) block<D, parts, 1>(p, row, f);
}

template <class D, class T>
HWY_INLINE void multiply_by(const Product<T>& p) {
  constexpr std::size_t lanes = hn::MaxLanes(D());
  for (std::size_t row = 0; row < p.rows;) {
    const std::size_t left = p.rows - row, taken = left >= 6 ? 6 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    std::size_t f = 0;
    for (; f + 2 * lanes <= p.width; f += 2 * lanes) block_of<D, 2>(p, taken, row, f);
    if (f < p.width) block_of<D, 1>(p, taken, row, f);
    row += taken;
  }
}

template <class T>
void multiply(const Product<T>& p) {
  if constexpr (hn::MaxLanes(WideTag<T>()) > hn::MaxLanes(Tag<T>()))
    if (full_vectors()) return multiply_by<WideTag<T>>(p);
  multiply_by<Tag<T>>(p);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::dense {
GRADLOOM_EXPORT(multiply);
}  // namespace gradloom::kernels::dense
#endif
