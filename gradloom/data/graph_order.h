// A numbering of a graph's nodes in which neighbours are close to each other.
#pragma once

#include <cstdint>
#include <vector>

#include "gradloom/data/graph.h"

namespace gradloom {

// The nodes of a graph, each once, in the order of Cuthill and McKee, reversed: breadth first, neighbours with fewer
// neighbours first. A component begins at a node that is far from the others. A function of the graph alone: ties go to
// the lower number. Arcs count in both directions.
std::vector<std::uint32_t> locality_order(const Graph& graph);

}  // namespace gradloom
