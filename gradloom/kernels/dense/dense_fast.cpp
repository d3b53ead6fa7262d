// The dense product; lanes are columns of y, and a few rows share each load of w.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/dense/dense_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/dense/fast.h"
#include "gradloom/kernels/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::dense {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// `rows` rows of y, two vectors wide.
template <std::size_t rows, class T>
HWY_INLINE void block(const Product<T>& p, std::size_t row, std::size_t f) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  using V = hn::Vec<Tag<T>>;
  T* y = p.y + row * p.y_stride + f;
  const std::size_t y_stride = p.y_stride, w_stride = p.w_stride, x_row = p.x_row, x_inner = p.x_inner;
  V low[rows], high[rows];
  unroll<rows>([&](auto r) GRADLOOM_UNROLLED {
    low[r] = hn::Zero(d), high[r] = hn::Zero(d);
    if (p.start == Start::bias) low[r] = hn::LoadU(d, p.bias + f), high[r] = hn::LoadU(d, p.bias + f + lanes);
    if (p.start == Start::y) low[r] = hn::LoadU(d, y + r * y_stride), high[r] = hn::LoadU(d, y + r * y_stride + lanes);
  });
  const T* x = p.x + row * x_row;
  const T* w = p.w + f;
  for (std::size_t k = p.inner; k > 0; --k, x += x_inner, w += w_stride) {
    const V w0 = hn::LoadU(d, w), w1 = hn::LoadU(d, w + lanes);
    unroll<rows>([&](auto r) GRADLOOM_UNROLLED {
      const V v = hn::Set(d, x[r * x_row]);
      low[r] = mul_add(v, w0, low[r]);
      high[r] = mul_add(v, w1, high[r]);
    });
  }
  if (p.start == Start::apart)
    unroll<rows>([&](auto r) GRADLOOM_UNROLLED {
      low[r] = hn::Add(hn::LoadU(d, y + r * y_stride), low[r]);
      high[r] = hn::Add(hn::LoadU(d, y + r * y_stride + lanes), high[r]);
    });
  unroll<rows>([&](auto r) GRADLOOM_UNROLLED {
    hn::StoreU(low[r], d, y + r * y_stride);
    hn::StoreU(high[r], d, y + r * y_stride + lanes);
  });
}

template <class T>
void multiply(const Product<T>& p) {
  constexpr std::size_t step = 2 * hn::MaxLanes(Tag<T>());
  for (std::size_t row = 0; row < p.rows;) {
    const std::size_t left = p.rows - row, taken = left >= 6 ? 6 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    for (std::size_t f = 0; f < p.width; f += step) {
      if (taken == 6) block<6>(p, row, f);
      if (taken == 4) block<4>(p, row, f);
      if (taken == 2) block<2>(p, row, f);
      if (taken == 1) block<1>(p, row, f);
    }
    row += taken;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::dense {
GRADLOOM_EXPORT(multiply);
}  // namespace gradloom::kernels::dense
#endif
