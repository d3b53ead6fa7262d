// PairDataset: pairs of graphs with a target, and batches in which every graph stands once.
#pragma once

#include <memory>
#include <vector>

#include "gradloom/data/graph_dataset.h"

namespace gradloom {

// Two graphs of a set by their numbers, and what is to be learned about them.
struct GraphPair {
  std::uint32_t first = 0, second = 0;
  double target = 0.0;
};

// B pairs of G graphs. `size` (of RowBatch) is B, `target` (B, 1); everything else of GraphBatch is about the G graphs.
// Owns nothing.
template <class T>
struct PairBatch : GraphBatch<T> {
  std::span<const std::uint32_t> first, second;  // (B): graphs of this batch
  std::span<const T> inverse_size;               // (B): 2 / (nodes of both)
  // Where graph g stands: entries use_ptr[g] .. use_ptr[g+1]-1 are pairs, ascending; a pair that holds g twice is there
  // once as first and once as second. `use_side` is 0 where g is first.
  std::span<const std::uint32_t> use_ptr, use_pair;  // (G + 1), (2 B)
  std::span<const std::uint8_t> use_side;            // (2 B)
};

// A batch of pairs is not cut: it is as small as it was made.
template <class T>
PairBatch<T> first_rows(const PairBatch<T>& batch, std::size_t) {
  return batch;
}

template <class T>
class PairDataset;

// The arrays of a batch's pairs.
template <class T>
struct PairArrays {
  std::vector<std::uint32_t> first, second, use_ptr, use_pair, next;
  std::vector<std::uint8_t> use_side;
  std::vector<T> target, inverse_size;
  void resize(std::size_t pairs, std::size_t graphs);
};

// Memory for batches of up to `max_size` pairs.
template <class T>
class PairBatchStorage {
 public:
  PairBatchStorage(const PairDataset<T>& data, std::size_t max_size);

 private:
  friend class PairDataset<T>;
  std::size_t max_size_;
  GraphBatchStorage<T> graphs_;
  PairArrays<T> pairs_;
  std::vector<std::uint32_t> number_;  // of a graph in this batch
  std::vector<std::uint32_t> which_;   // the graphs of this batch
};

// Immutable; instantiated for float and double. Samples are pairs.
template <class T>
class PairDataset {
 public:
  using Storage = PairBatchStorage<T>;

  // `arrays` of a graph task. Throws when there is no pair, or one names a graph that does not exist or has no nodes.
  PairDataset(std::shared_ptr<const GraphArrays<T>> arrays, std::vector<GraphPair> pairs);

  std::size_t size() const { return pairs_.size(); }
  const std::vector<GraphPair>& pairs() const { return pairs_; }
  const GraphDataset<T>& graphs() const { return graphs_; }

  Storage make_storage(std::size_t max_size) const { return Storage(*this, max_size); }
  PairBatch<T> all() const;
  // Copies the pairs and their graphs, in the order in which they first appear; never allocates. Throws as
  // GraphDataset::gather does.
  PairBatch<T> gather(std::span<const std::uint32_t> pairs, Storage& storage) const;

 private:
  GraphDataset<T> graphs_;
  std::vector<GraphPair> pairs_;
  PairArrays<T> all_;
};

}  // namespace gradloom
