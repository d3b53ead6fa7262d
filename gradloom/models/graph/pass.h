// What the forward and the backward pass of graph networks share; not part of the interface.
#pragma once

#include <algorithm>

#include "gradloom/models/graph/network.h"

namespace gradloom::graph {

namespace dense = kernels::dense;
namespace message = kernels::message;
namespace rowwise = kernels::rowwise;

// Parallel tasks for so much work, some microseconds each. Work is counted in multiplications of a dense product; an
// element that is read, changed a little and written takes as long as kPlain of them, one that is gathered kGathered.
inline constexpr std::size_t kPlain = 8, kGathered = 4;
inline std::size_t task_count(std::size_t work) { return std::clamp<std::size_t>(work / 65536, 1, 256); }

// The sums of a graph's rows are cut only when it has more rows than this.
inline constexpr std::size_t kGraphBlock = 2048;

// Whole graphs, computed one operation after the other by one worker or, when they are large, by all of them.
struct Part {
  std::size_t first_node = 0, last_node = 0, first_graph = 0, last_graph = 0;
  std::size_t begin(const Tensor& t) const { return t.graphs ? first_graph : first_node; }
  std::size_t end(const Tensor& t) const { return t.graphs ? last_graph : last_node; }
};

// body(begin, end) for pieces of rows [first, last), each with about equal work; boundaries are multiples of 12 from
// the first row on, for the product.
template <class F>
void for_rows(const Exec& ex, std::size_t first, std::size_t last, std::size_t work_per_row, F&& body) {
  const std::size_t rows = last - first, tasks = task_count(rows * work_per_row), units = (rows + 11) / 12;
  ex.parallel_for(tasks, [&](std::size_t t, unsigned) {
    const std::size_t begin = std::min(rows, units * t / tasks * 12),
                      end = std::min(rows, units * (t + 1) / tasks * 12);
    if (begin < end) body(first + begin, first + end);
  });
}

// body(begin, end) for pieces of rows [first, last) with about equal numbers of arcs.
template <class F>
void for_arcs(const Exec& ex, const std::uint32_t* ptr, std::size_t first, std::size_t last, std::size_t work_per_arc,
              F&& body) {
  const std::size_t rows = last - first, tasks = task_count((ptr[last] - ptr[first] + rows) * work_per_arc);
  ex.parallel_for(tasks, [&](std::size_t t, unsigned) {
    body(first + message::row_bound(ptr + first, rows, tasks, t),
         first + message::row_bound(ptr + first, rows, tasks, t + 1));
  });
}

// body(begin, end) for pieces of [0, size); boundaries are multiples of 8192.
template <class F>
void for_ranges(const Exec& ex, std::size_t size, F&& body) {
  constexpr std::size_t kRange = 8192;
  ex.parallel_for((size + kRange - 1) / kRange,
                  [&](std::size_t t, unsigned) { body(t * kRange, std::min(size, (t + 1) * kRange)); });
}

// body(block, begin, end) for the blocks of rows [0, rows) over which sums are defined.
template <class F>
void for_blocks(const Exec& ex, std::size_t rows, F&& body, std::size_t least = dense::kBlock) {
  const std::size_t count = dense::row_blocks(rows, least), size = dense::block_rows(rows, least);
  ex.parallel_for(count,
                  [&](std::size_t b, unsigned) { body(b, std::min(rows, b * size), std::min(rows, (b + 1) * size)); });
}

// Batch norm sees all rows, so it ends what a part can do alone.
template <class T>
template <class F>
void GraphNetwork<T>::run_ops(const Exec& ex, const Batch& batch, const Tape& tape, Order order, F&& run) const {
  const Exec alone({.threads = 1, .variant = ex.variant()});
  const std::size_t count = ops_.size();
  const auto op = [&](std::size_t k) { return order == Order::forwards ? k : count - 1 - k; };
  for (std::size_t at = 0; at < count;) {
    if (is_barrier(op(at))) {
      run(ex, Part{0, batch.nodes, 0, batch.graphs}, op(at++), 0u);
      continue;
    }
    std::size_t end = at;
    while (end < count && !is_barrier(op(end))) ++end;
    for (std::size_t p = 0; p < tape.wide_count_; ++p)
      for (std::size_t k = at; k < end; ++k) run(ex, part_of(batch, tape, tape.wide_, p), op(k), 0u);
    ex.parallel_for(tape.pack_count_, [&](std::size_t p, unsigned worker) {
      for (std::size_t k = at; k < end; ++k) run(alone, part_of(batch, tape, tape.packs_, p), op(k), worker);
    });
    at = end;
  }
}

template <class T>
struct NormPass {
  const Step& step;
  const ModelArrays<T>& arrays;
  const Op& op;
  std::size_t first, last, width, stride;  // rows [first, last); batch norm: all there are
};

template <class T>
void forward_norm(const Exec& ex, const GraphNetwork<T>& network, const NormPass<T>& p, const T* x, T* mean, T* inverse,
                  T* blocks, T* y);
// Also leaves the gradients of gain and shift in `sums` (2, stride) as row blocks that were added.
template <class T>
void backward_batch_norm(const Exec& ex, const GraphNetwork<T>& network, const NormPass<T>& p, const T* x, T* mean,
                         T* inverse, T* blocks, T* sums, const T* dl_dy, T* dl_dx);
template <class T>
rowwise::LayerNorm<T> layer_of(const GraphNetwork<T>& network, const NormPass<T>& p, const T* x, T* mean, T* inverse);

template <class T>
void forward_readout(const Exec& ex, Readout kind, const GraphBatch<T>& batch, const Part& part, const T* x,
                     std::size_t stride, std::uint32_t* winner, T* y);
// dl_dx is overwritten.
template <class T>
void backward_readout(const Exec& ex, Readout kind, const GraphBatch<T>& batch, const Part& part, const T* dl_dy,
                      std::size_t stride, const std::uint32_t* winner, T* dl_dx);

}  // namespace gradloom::graph
