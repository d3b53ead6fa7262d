// GraphColumns: the columns that features of graphs become, and the check that all graphs of a set have them.
#pragma once

#include "gradloom/data/graph_dataset.h"

namespace gradloom {

struct GraphColumns {
  NodeFeatures nodes = NodeFeatures::degrees;  // never automatic
  bool sparse = false;                         // given features of nodes are sparse
  std::size_t node_features = 0, edge_features = 0;
};

// The first graph that has nodes, else the first; it tells what nodes carry. The set has one graph at least.
const Graph& first_with_nodes(const GraphSet& set);

// Columns of a set, the same for each part of it: what is in them is told by the first graph that has nodes, or edges.
// Throws Exception{invalid_input} when it lacks what options ask for, or when one of the graphs `which` carries
// something else than it does.
GraphColumns graph_columns(const GraphSet& set, std::span<const std::uint32_t> which,
                           const GraphFeatureOptions& options);

}  // namespace gradloom
