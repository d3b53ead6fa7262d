#include "gradloom/kernels/message/message.h"

#include <algorithm>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/message/fast.h"

namespace gradloom::kernels::message {

template <class T>
void gather_rows(Variant variant, const Gather<T>& g, std::size_t begin, std::size_t end) {
  GRADLOOM_CHOOSE(variant, gather_rows<T>)(g, begin, end);
}

template <class T>
void gather_segment(Variant variant, const Gather<T>& g, std::size_t row, std::size_t segment, T* sum) {
  GRADLOOM_CHOOSE(variant, gather_segment<T>)(g, row, segment, sum);
}

template <class T>
void finish_hub(const Gather<T>& g, std::size_t row, const T* sums) {
  const std::size_t segments = hub_segments(g.ptr, row);
  T* y = g.y + row * g.y_stride;
  for (std::size_t f = 0; f < g.width; ++f) {
    T sum = sums[f];
    for (std::size_t s = 1; s < segments; ++s) sum = sum + sums[s * g.width + f];
    y[f] = g.row_scale ? g.row_scale[row] * sum : sum;
  }
}

template <class T>
void value_gradient(Arithmetic arithmetic, const Gather<T>& forward, const T* dl_dy, std::size_t dl_dy_stride,
                    std::size_t begin, std::size_t end, Onto onto, T* dl_dv) {
  GRADLOOM_DEFINITION(arithmetic, value_gradient<T>)(forward, dl_dy, dl_dy_stride, begin, end, onto, dl_dv);
}

template <class T>
T dot8(Arithmetic arithmetic, const T* a, const T* b, std::size_t width) {
  return GRADLOOM_DEFINITION(arithmetic, dot8<T>)(a, b, width);
}

template <class T>
void max_rows(Variant variant, const Maximum<T>& m, std::size_t begin, std::size_t end) {
  GRADLOOM_CHOOSE(variant, max_rows<T>)(m, begin, end);
}

template <class T>
void max_gradient_rows(Variant variant, const MaximumGradient<T>& m, std::size_t begin, std::size_t end) {
  GRADLOOM_CHOOSE(variant, max_gradient_rows<T>)(m, begin, end);
}

std::size_t row_bound(const std::uint32_t* ptr, std::size_t n, std::size_t tasks, std::size_t t) {
  if (t == 0) return 0;
  if (t >= tasks) return n;
  const std::size_t work = (ptr[n] - ptr[0] + n) * t / tasks;
  std::size_t low = 0, high = n;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (ptr[middle] - ptr[0] + middle < work)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

GRADLOOM_INSTANTIATE(gather_rows);
GRADLOOM_INSTANTIATE(gather_segment);
GRADLOOM_INSTANTIATE(finish_hub);
GRADLOOM_INSTANTIATE(value_gradient);
GRADLOOM_INSTANTIATE(dot8);
GRADLOOM_INSTANTIATE(max_rows);
GRADLOOM_INSTANTIATE(max_gradient_rows);

}  // namespace gradloom::kernels::message
