// Expressions to rewrite, drawn from a seed, and batches of their trees.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gradloom/data/graph_batch.h"
#include "gradloom/data/rewrite_rules.h"

namespace gradloom {

// How many expressions of each part, and of how many nodes.
struct ExpressionSetOptions {
  std::uint64_t seed = 0;
  std::size_t train = 0, validation = 0, test = 0, large = 0;
  std::size_t least_nodes = 5, most_nodes = 25;  // train, validation, test
  std::size_t large_least = 26, large_most = 40;
};

// All different, within a part and between parts.
struct ExpressionSets {
  std::vector<Expression> train, validation, test, large;
};

// Sizes are drawn evenly. Of twenty expressions at most one may have nothing to rewrite: keeping everything is right
// for at most a twentieth. Functions of the seed alone. Throws Exception{invalid_input} when least > most, or when
// there are not enough different expressions.
ExpressionSets draw_expressions(const ExpressionSetOptions& options);

// One pass of the rules: the source, the edits, and what they make of it.
struct RewriteSample {
  Expression source, target;
  std::vector<NodeEdit> edits;
};
RewriteSample make_sample(Expression source);

// Every pass from each expression to its normal form, and the normal form, which is kept; each source once. Sources
// that `held_out` holds are left out.
std::vector<RewriteSample> pass_samples(std::span<const Expression> expressions, std::span<const Expression> held_out);

// Classes of the edit of a node: keep, erase, relabel to each symbol; and of what comes above it: nothing, a negation,
// an opposite.
inline constexpr std::size_t kEditClasses = 2 + kSymbols, kInsertClasses = 3,
                             kNodeOutputs = kEditClasses + kInsertClasses;
std::uint8_t edit_class(const NodeEdit& edit);
std::uint8_t insert_class(const NodeEdit& edit);
NodeEdit edit_of(std::size_t edit_class, std::size_t insert_class);

// What the loss is made of: the cross-entropy of edits and insertions of all nodes, and so many times the soft edit
// distance between the tree that the edits make and the target.
struct RewriteLoss {
  double soft_weight = 0.0;
  double temperature = 0.3;  // of the soft distance
  unsigned iterations = 10, rounds = 2;
};

// Memory that a loss keeps between calls, in the slot of a batch; only the loss knows what it is.
struct LossMemory {
  virtual ~LossMemory() = default;
};

// B trees with N nodes together. `size` (of RowBatch) is B; of GraphBatch it has the nodes of each tree, in preorder,
// and the number of each tree in `samples`, but no arcs. Owns nothing.
template <class T>
struct TreeBatch : GraphBatch<T> {
  std::span<const std::uint8_t> symbol;                // (N)
  std::span<const std::uint32_t> parent, left, right;  // (N): nodes of the batch, or kNoNode
  std::span<const std::uint8_t> edit, insert;          // (N): classes to learn
  std::span<const RewriteSample> samples;
  RewriteLoss loss;
  std::unique_ptr<LossMemory>* memory = nullptr;
};

// A batch of trees is not cut.
template <class T>
TreeBatch<T> first_rows(const TreeBatch<T>& batch, std::size_t) {
  return batch;
}

// Arrays of trees, one after the other.
struct TreeArrays {
  std::vector<std::uint32_t> graph_ptr{0}, parent, left, right, sample;
  std::vector<std::uint8_t> symbol, edit, insert;
};

template <class T>
class TreeDataset;

template <class T>
class TreeBatchStorage {
 public:
  TreeBatchStorage(const TreeDataset<T>& data, std::size_t max_size);

 private:
  friend class TreeDataset<T>;
  std::size_t max_size_;
  TreeArrays arrays_;
  std::unique_ptr<LossMemory> memory_;
};

// Immutable but for the memory of losses; instantiated for float and double. Samples are trees.
template <class T>
class TreeDataset {
 public:
  using Storage = TreeBatchStorage<T>;

  // Throws when there is no sample, a source without nodes, or edits that are not one for each node.
  TreeDataset(std::vector<RewriteSample> samples, const RewriteLoss& loss);

  std::size_t size() const { return data_->samples.size(); }
  const std::vector<RewriteSample>& samples() const { return data_->samples; }
  std::size_t most_nodes() const { return data_->most_nodes; }

  Storage make_storage(std::size_t max_size) const { return Storage(*this, max_size); }
  TreeBatch<T> all() const;
  // Copies trees; never allocates. Throws when there are more than fit, or one that does not exist.
  TreeBatch<T> gather(std::span<const std::uint32_t> which, Storage& storage) const;

 private:
  // Shared by copies.
  struct Content {
    std::vector<RewriteSample> samples;
    RewriteLoss loss;
    TreeArrays arrays;
    std::size_t most_nodes = 0;
    std::unique_ptr<LossMemory> memory;
  };
  std::shared_ptr<Content> data_;
};

}  // namespace gradloom
