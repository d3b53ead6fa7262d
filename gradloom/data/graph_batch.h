// GraphBatch: some graphs side by side, as one block-diagonal graph, as graph networks and losses see them.
#pragma once

#include <cstdint>
#include <span>

#include "gradloom/data/batch.h"

namespace gradloom {

// A sparse matrix in rows and, beside it, transposed; `slot` leads from a place of the transposed one to the entry.
struct SparsePattern {
  std::span<const std::uint32_t> ptr, index;                    // (rows + 1), (entries)
  std::span<const std::uint32_t> out_ptr, out_index, out_slot;  // (columns + 1), (entries), (entries)
};

// N nodes, E arcs, G graphs. As a RowBatch: `size` rows of output, which are the nodes (node tasks) or the graphs
// (graph tasks), with their labels, targets and weights; x are the features of the nodes whatever the task, and empty
// when features are sparse. Rows of x, padded with zeros to a multiple of 16, need no copy. Owns nothing.
template <class T>
struct GraphBatch : RowBatch<T> {
  std::size_t nodes = 0, graphs = 0;
  SparsePattern arcs;                           // rows: destinations; index: sources
  std::span<const std::uint32_t> graph_ptr;     // (G + 1): the nodes of graph g
  std::span<const std::uint32_t> sample;        // (G): which graph of the data set it is; empty: 0, 1, ...
  std::span<const T> root, with_self, without;  // (N): 1 / sqrt(d + 1), 1 / (d + 1), 1 / d (0 for d = 0); d: arcs in
  std::span<const T> edge_weight;               // (E), by slot; empty: all 1
  View<const T, 2> edge_x;                      // (E, Fe), by slot, rows padded to 16; empty: none
  SparsePattern features;                       // of nodes, when they are sparse
  std::span<const T> feature_value;
  std::size_t feature_columns = 0;

  std::size_t arc_count() const { return arcs.index.size(); }
  bool sparse() const { return !features.ptr.empty(); }
  std::uint32_t sample_of(std::size_t g) const { return sample.empty() ? static_cast<std::uint32_t>(g) : sample[g]; }
};

// A batch of graphs is not cut: it is as small as it was made.
template <class T>
GraphBatch<T> first_rows(const GraphBatch<T>& batch, std::size_t) {
  return batch;
}

}  // namespace gradloom
