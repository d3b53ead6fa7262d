// All pairs of a set of graphs, shared by ranks.
#pragma once

#include "gradloom/comm/comm.h"
#include "gradloom/ged/ged.h"

namespace gradloom::app {

// The distances of ged::all_pairs(), on rank 0; the others return what they computed. Graphs are cut into blocks; pairs
// of blocks are dealt by an estimate of their costs, from the most expensive to the cheapest, each to the rank that has
// least so far. Pairs that turn out hard are then dealt one by one. All ranks have the same graphs, costs and limits.
// options.progress is told the easy pairs of this rank.
ged::AllPairs shared_pairs(Comm& comm, const Exec& ex, const GraphSet& set, const ged::CostTable& costs,
                           const ged::AllPairsOptions& options);

}  // namespace gradloom::app
