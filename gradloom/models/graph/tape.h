// GraphTape: the memory of the passes of a graph network.
#pragma once

#include <array>
#include <variant>
#include <vector>

#include "gradloom/data/graph_pairs.h"
#include "gradloom/data/rewrite_dataset.h"
#include "gradloom/models/model.h"

namespace gradloom::graph {

inline constexpr std::size_t kNone = ~std::size_t{0};

template <class T>
class GraphNetwork;
template <class T>
struct Seen;
template <class T>
struct Pass;

// Regions of a tape that one operation reserved, by the numbers that it gave them.
using OpMemory = std::array<std::size_t, 5>;

enum class RowsAre { nodes, graphs, pairs };

// Of a batch.
struct BatchSizes {
  std::size_t nodes = 0, graphs = 0, pairs = 0, arcs = 0, entries = 0;  // entries: of sparse features
  std::size_t rows(RowsAre r) const { return r == RowsAre::nodes ? nodes : r == RowsAre::graphs ? graphs : pairs; }
};

// Memory of a forward and backward pass, linear in nodes times widths and in arcs times heads.
template <class T>
class GraphTape {
 public:
  std::size_t bytes() const { return workspace_.bytes(); }
  // dl/d(edge weight) (E) and dl/d(edge feature) (E, Fe, rows of `stride`) of the last backward pass that was asked for
  // dl_dx with a tape made for that; empty when the batch has none.
  std::span<const T> edge_weight_gradient() const { return edge_weight_gradient_; }
  View<const T, 2> edge_feature_gradient() const { return edge_feature_gradient_; }

 private:
  friend class GraphNetwork<T>;
  friend struct Seen<T>;
  friend struct Pass<T>;
  // Rows with so many entries that several workers share one.
  struct HubList {
    std::size_t rows = 0, starts = 0;  // in the workspace: hubs, and the first segment of each
    std::size_t count = 0, segments = 0;
  };
  TapeLimits limits_;
  BatchSizes most_;  // of the largest batch
  // Forward only, with sums by parts: tensors of nodes have no more memory than the parts that workers are at need.
  unsigned workers_ = 0;         // 0: they hold the batch
  unsigned threads_ = 1;         // of the executor it was made for; sums over many rows serve no more
  std::size_t part_nodes_ = 0;   // the most of one part
  std::size_t part_graphs_ = 0;  // of a part, where the batch is some of a larger one; 0: part_graphs() of the batch
  Workspace workspace_;
  std::vector<std::size_t> value_, gradient_;  // of each tensor
  std::vector<OpMemory> op_;
  std::vector<std::size_t> forward_phase_, backward_phase_;  // of each operation, for profiles
  std::vector<std::uint8_t> needed_;                         // of each tensor: its gradient is needed
  std::vector<std::uint8_t> graded_;  // (operations, tensors): has a gradient when the operation's turn comes
  // Pairs of first and last graph: parts that all workers compute together, then parts for one worker each. And the
  // number of the first block of rows of each graph.
  std::size_t wide_ = 0, packs_ = 0, first_block_ = 0;
  std::size_t wide_count_ = 0, pack_count_ = 0, large_count_ = 0;
  std::size_t widest_ = 0;  // the largest stride: rows of shared memory are so far apart, whatever they hold
  std::size_t blocks_ = 0, large_ = 0, segments_ = 0, scratch_ = 0, edge_weight_ = 0, edge_x_ = 0;
  std::array<HubList, 4> hubs_;
  // Of the last forward pass.
  const T* x_ = nullptr;
  std::variant<GraphBatch<T>, PairBatch<T>, TreeBatch<T>> seen_;
  ModelArrays<T> arrays_;
  bool ran_ = false, trained_ = false;  // trained_: it was in training mode
  std::span<const T> edge_weight_gradient_;
  View<const T, 2> edge_feature_gradient_;
};

}  // namespace gradloom::graph
