// Options of a run that trains a graph network.
#pragma once

#include <vector>

#include "gradloom/models/graph/network.h"
#include "gradloom/session/options/family.h"
#include "gradloom/session/options/graphs.h"

namespace gradloom {

// Graphs that need no file.
enum class ShippedGraph { none, karate };
inline constexpr Choice<ShippedGraph> kShippedGraphs[] = {
    {ShippedGraph::none, "", "none"},
    {ShippedGraph::karate, "karate", "Zachary's karate club"},
};

struct GraphDataOptions : GraphFileOptions {
  ShippedGraph graph = ShippedGraph::none;  // without a path
  std::vector<std::uint64_t> train_nodes;   // labelled nodes; none: the split of the file
  std::size_t folds = 0;                    // cross-validation over graphs; 0: off
  std::int64_t fold = -1;                   // the fold to test on; -1: the seed modulo `folds`
  bool curve = false;                       // measure the accuracy on validation and test data after every epoch
};

// Graphs whose exact edit distances are compared with the network's outputs.
struct GraphDistanceOptions {
  std::size_t sample = 0;            // graphs; 0: none
  std::uint32_t nodes = 16;          // at most, of a graph
  std::uint64_t every = 10;          // epochs between two comparisons
  std::uint64_t expansions = 20000;  // search nodes of each distance
};

struct GraphOptions : FamilyOptions {
  GraphOptions() {
    family = "graph";
    train.epochs = 200;
    train.loss_kind = LossKind::cross_entropy;
    train.batch = 0;
    model.hidden = {16};
  }

  GraphDataOptions data;
  graph::NetworkOptions model;  // inputs, outputs and limits follow from the data
  GraphDistanceOptions ged;
  std::vector<GraphOptions> stages;
};

}  // namespace gradloom
