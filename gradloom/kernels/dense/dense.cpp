#include "gradloom/kernels/dense/dense.h"

#include "gradloom/kernels/dense/fast.h"
#include "gradloom/kernels/dispatch.h"

namespace gradloom::kernels::dense {

template <class T>
void multiply(Variant variant, const Product<T>& p) {
  GRADLOOM_CHOOSE(variant, multiply<T>)(p);
}

template <class T>
void transpose(const T* from, std::size_t rows, std::size_t columns, std::size_t stride, T* to) {
  const std::size_t width = padded(rows);
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t r = 0; r < rows; ++r) to[c * width + r] = from[r * stride + c];
    for (std::size_t r = rows; r < width; ++r) to[c * width + r] = T(0);
  }
}

template <class T>
void column_sums(const T* __restrict x, std::size_t rows, std::size_t width, std::size_t stride, T* __restrict sums) {
  std::fill_n(sums, width, T(0));
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t f = 0; f < width; ++f) sums[f] = sums[f] + x[r * stride + f];
}

template <class T>
void add_blocks(T* partials, std::size_t blocks, std::size_t size, std::size_t begin, std::size_t end,
                GradientMode mode, T* to) {
  for (std::size_t step = 1; step < blocks; step *= 2)
    for (std::size_t b = 0; b + step < blocks; b += 2 * step) {
      T* __restrict a = partials + b * size;
      const T* __restrict c = partials + (b + step) * size;
      for (std::size_t i = begin; i < end; ++i) a[i] = a[i] + c[i];
    }
  if (mode == GradientMode::overwrite)
    std::copy(partials + begin, partials + end, to + begin);
  else
    for (std::size_t i = begin; i < end; ++i) to[i] = to[i] + partials[i];
}

GRADLOOM_INSTANTIATE(multiply);
GRADLOOM_INSTANTIATE(transpose);
GRADLOOM_INSTANTIATE(column_sums);
GRADLOOM_INSTANTIATE(add_blocks);

}  // namespace gradloom::kernels::dense
