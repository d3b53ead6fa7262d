// What the forward and the backward pass of graph networks share; not part of the interface.
#pragma once

#include <algorithm>

#include "gradloom/models/graph/network.h"

namespace gradloom::graph {

namespace dense = kernels::dense;
namespace message = kernels::message;
namespace rowwise = kernels::rowwise;

// Parallel tasks for this many multiplications or additions: enough work in each to be worth a task.
inline std::size_t task_count(std::size_t work) { return std::clamp<std::size_t>(work / 16384, 1, 256); }

// body(begin, end) for parts of rows, each with about equal work; row boundaries are multiples of 12 for the product.
template <class F>
void for_rows(const Exec& ex, std::size_t rows, std::size_t work_per_row, F&& body) {
  const std::size_t tasks = task_count(rows * work_per_row), units = (rows + 11) / 12;
  ex.parallel_for(tasks, [&](std::size_t t, unsigned) {
    const std::size_t begin = std::min(rows, units * t / tasks * 12),
                      end = std::min(rows, units * (t + 1) / tasks * 12);
    if (begin < end) body(begin, end);
  });
}

// body(begin, end) for parts of a long array; boundaries are multiples of 8192.
template <class F>
void for_ranges(const Exec& ex, std::size_t size, F&& body) {
  constexpr std::size_t kRange = 8192;
  ex.parallel_for((size + kRange - 1) / kRange,
                  [&](std::size_t t, unsigned) { body(t * kRange, std::min(size, (t + 1) * kRange)); });
}

// body(block, begin, end) for the blocks of rows over which sums are defined.
template <class F>
void for_blocks(const Exec& ex, std::size_t rows, F&& body) {
  const std::size_t count = dense::row_blocks(rows), size = dense::block_rows(rows);
  ex.parallel_for(count,
                  [&](std::size_t b, unsigned) { body(b, std::min(rows, b * size), std::min(rows, (b + 1) * size)); });
}

template <class T>
struct NormPass {
  const Step& step;
  const ModelArrays<T>& arrays;
  const Op& op;
  std::size_t rows, width, stride;
};

template <class T>
void forward_norm(const Exec& ex, const GraphNetwork<T>& network, const NormPass<T>& p, const T* x, T* mean, T* inverse,
                  T* blocks, T* y);
// Also leaves the gradients of gain and shift in `sums` (2, stride) as row blocks that were added.
template <class T>
void backward_norm(const Exec& ex, const GraphNetwork<T>& network, const NormPass<T>& p, const T* x, T* mean,
                   T* inverse, T* blocks, T* sums, const T* dl_dy, T* dl_dx);

template <class T>
void forward_readout(const Exec& ex, Readout kind, const GraphBatch<T>& batch, const T* x, std::size_t stride,
                     std::uint32_t* winner, T* y);
// dl_dx is overwritten.
template <class T>
void backward_readout(const Exec& ex, Readout kind, const GraphBatch<T>& batch, const T* dl_dy, std::size_t stride,
                      const std::uint32_t* winner, T* dl_dx);

}  // namespace gradloom::graph
