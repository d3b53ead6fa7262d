// The loss of rewriting: cross-entropy of the edits of an exact path, and the soft edit distance to the target.
#pragma once

#include "gradloom/data/rewrite_dataset.h"
#include "gradloom/exec/exec.h"

namespace gradloom::graph {

// Of each tree: sum over its nodes of -log softmax(edit logits)[edit] - log softmax(insert logits)[insert], plus
// batch.loss.soft_weight times the soft edit distance between the tree that the edits make, softly, and the target:
//   a node of the source is there with probability 1 - P(erase), and its symbol is distributed as keep and relabel say;
//   it is the child of an ancestor with the probability that both are there and every node between is erased;
//   substitutions, deletions and insertions of nodes cost 1, edges kPathEdgeCost.
// Insertions are not part of the soft tree: cross-entropy alone teaches them. docs/math/graph-tasks.md has the
// gradient. y (B, most_nodes * kNodeOutputs); dl_dy is overwritten and may be empty. Returns `factor` times the sum
// over trees, each computed by one worker, added in order.
template <class T>
double rewrite_loss(const Exec& ex, const TreeBatch<T>& batch, View<const T, 2> y, View<T, 2> dl_dy, double factor);

}  // namespace gradloom::graph
