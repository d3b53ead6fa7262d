// Loops over the rows of a tensor, cut into tasks; not part of the interface of graph networks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gradloom/kernels/dense/dense.h"
#include "gradloom/kernels/message/message.h"
#include "gradloom/kernels/reduce/tree_sum.h"
#include "gradloom/kernels/rowwise/rowwise.h"

namespace gradloom::graph {

namespace dense = kernels::dense;
namespace message = kernels::message;
namespace reduce = kernels::reduce;
namespace rowwise = kernels::rowwise;

// Parallel tasks for so much work, some microseconds each. Work is counted in multiplications of a dense product; an
// element that is read, changed a little and written takes as long as kElementwise of them, one that is gathered
// kGathered.
inline constexpr std::size_t kElementwise = 8, kGathered = 4;
inline std::size_t task_count(std::size_t work) { return std::clamp<std::size_t>(work / 65536, 1, 256); }

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

// Arrays behind those of the blocks that for_leaves() needs for sums over so many rows.
inline std::size_t spare_sums(std::size_t rows, unsigned workers) {
  const std::size_t leaves = dense::block_leaves(rows);
  return leaves > 1 ? workers * reduce::tree_levels(leaves) : 0;
}

// body(to, begin, end) stores the sum over some rows to an array of `size` numbers; the sum over each block of rows
// [0, rows) is then in its array at `sums`.
template <class T, class F>
void for_leaves(const Exec& ex, std::size_t rows, T* sums, std::size_t size, F&& body) {
  const std::size_t leaves = dense::block_leaves(rows);
  if (leaves == 1)
    return for_blocks(ex, rows,
                      [&](std::size_t b, std::size_t begin, std::size_t end) { body(sums + b * size, begin, end); });
  const std::size_t count = dense::row_blocks(rows), levels = reduce::tree_levels(leaves);
  ex.parallel_for(count, [&](std::size_t b, unsigned worker) {
    T* apart = sums + (count + worker * levels) * size;
    const reduce::TreeSum<T> sum{.root = sums + b * size, .upper = apart + size, .stride = size};
    const std::size_t first = b * dense::block_rows(rows), last = std::min(rows, first + dense::block_rows(rows));
    for (std::size_t begin = first, leaf = 0; begin < last; begin += dense::kLeafRows, ++leaf) {
      const reduce::LeafPlace place = reduce::place_of(leaf);
      T* level = sum.level(place.level);
      body(place.store ? level : apart, begin, std::min(last, begin + dense::kLeafRows));
      for (std::size_t i = 0; !place.store && i < size; ++i) level[i] = level[i] + apart[i];
      reduce::merge_levels(sum, leaf, 0, size);
    }
    reduce::finish_levels(sum, divide_up(last - first, dense::kLeafRows), 0, size);
  });
}

}  // namespace gradloom::graph
