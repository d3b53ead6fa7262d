#include "gradloom/kernels/reduce/reduce.h"

#include <algorithm>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/reduce/fast.h"

namespace gradloom::kernels::reduce {
namespace {

constexpr std::size_t kTask = 16 * kReduceChunk;  // elements that one thread takes at a time

// body(begin, end) on pieces of kTask elements.
template <class F>
void for_each_task(const Exec& exec, std::size_t size, F&& body) {
  exec.parallel_for(divide_up(size, kTask),
                    [&](std::size_t task, unsigned) { body(task * kTask, std::min(size, (task + 1) * kTask)); });
}

template <class T, class F, class G>
T combine_chunks(const Exec& exec, std::size_t size, std::span<T> scratch, F&& chunk, G&& combine) {
  const std::size_t chunks = reduce_scratch(size);
  if (chunks == 0) return T(0);
  for_each_task(exec, size, [&](std::size_t begin, std::size_t end) {
    for (std::size_t n = begin; n < end; n += kReduceChunk)
      scratch[n / kReduceChunk] = chunk(n, std::min(kReduceChunk, end - n));
  });
  for (std::size_t stride = 1; stride < chunks; stride *= 2)
    for (std::size_t c = 0; c + stride < chunks; c += 2 * stride) scratch[c] = combine(scratch[c], scratch[c + stride]);
  return scratch[0];
}

}  // namespace

template <class T>
T dot(const Exec& exec, std::span<const T> a, std::span<const T> b, std::span<T> scratch) {
  const auto chunk_dot = GRADLOOM_CHOOSE(exec.variant(), chunk_dot<T>);
  const auto chunk = [&](std::size_t at, std::size_t n) { return chunk_dot(a.data() + at, b.data() + at, n); };
  return combine_chunks<T>(exec, a.size(), scratch, chunk, [](T x, T y) { return x + y; });
}

template <class T>
T sum_of_squares(const Exec& exec, std::span<const T> a, std::span<T> scratch) {
  return dot(exec, a, a, scratch);
}

template <class T>
T max_abs(const Exec& exec, std::span<const T> a, std::span<T> scratch) {
  const auto chunk_max_abs = GRADLOOM_CHOOSE(exec.variant(), chunk_max_abs<T>);
  const auto chunk = [&](std::size_t at, std::size_t n) { return chunk_max_abs(a.data() + at, n); };
  return combine_chunks<T>(exec, a.size(), scratch, chunk, reference::split::larger<T>);
}

template <class T>
void axpy(const Exec& exec, T factor, std::span<const T> x, std::span<T> y) {
  const auto chunk_axpy = GRADLOOM_CHOOSE(exec.variant(), chunk_axpy<T>);
  for_each_task(exec, x.size(), [&](std::size_t begin, std::size_t end) {
    chunk_axpy(factor, x.data() + begin, y.data() + begin, end - begin);
  });
}

template <class T>
void scale(const Exec& exec, T factor, std::span<T> x) {
  const auto chunk_scale = GRADLOOM_CHOOSE(exec.variant(), chunk_scale<T>);
  for_each_task(exec, x.size(),
                [&](std::size_t begin, std::size_t end) { chunk_scale(factor, x.data() + begin, end - begin); });
}

GRADLOOM_INSTANTIATE(dot);
GRADLOOM_INSTANTIATE(sum_of_squares);
GRADLOOM_INSTANTIATE(max_abs);
GRADLOOM_INSTANTIATE(axpy);
GRADLOOM_INSTANTIATE(scale);

}  // namespace gradloom::kernels::reduce
