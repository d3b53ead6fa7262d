// Rewriting with a trained network: its answers as edits, pass after pass until it keeps everything.
#pragma once

#include "gradloom/models/graph/tree_network.h"

namespace gradloom::graph {

// The most likely edit and insertion of each of the n nodes whose answers stand in a row of y; the lowest class on
// ties. A relabelling to the symbol that a node has is keeping it.
template <class T>
std::vector<NodeEdit> decode_edits(const T* row, const Expression& e);

struct RewriteRun {
  Expression result;
  std::size_t passes = 0;  // that changed something
  bool settled = false;    // the network keeps the result as it is
};

struct RewriteRunOptions {
  std::size_t passes = 32;       // at most
  std::size_t most_nodes = 400;  // an expression that has grown beyond this is left as it is
};

// Every expression on its own; empty ones stay empty. The network may have been made for smaller trees.
template <class T>
std::vector<RewriteRun> rewrite(const Exec& ex, const TreeNetwork<T>& network, const ModelArrays<T>& arrays,
                                std::span<const Expression> expressions, const RewriteRunOptions& options);

}  // namespace gradloom::graph
