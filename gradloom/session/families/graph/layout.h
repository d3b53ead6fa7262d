// GraphLayout: how graphs become numbers for a network, and what is known of those that it was trained on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradloom/data/graph_dataset.h"
#include "gradloom/session/model_file.h"

namespace gradloom {

struct GraphLayout {
  GraphTask task = GraphTask::graph;
  NodeFeatures nodes = NodeFeatures::constant;        // never automatic
  std::size_t node_features = 1, edge_features = 0;   // columns
  std::size_t given_edge_features = 0;                // columns that the file has; labels make the others
  bool sparse = false;                                // features of nodes
  bool edge_weights = false;                          // edges have weights
  std::vector<std::string> node_labels, edge_labels;  // names by number; empty unless features are made of them
  std::vector<std::string> node_names, edge_names;    // of given features, as files name them; empty: by position
  std::optional<Direction> direction;                 // of the edges; none: not known, or of both kinds
  std::vector<std::string> classes;                   // empty: a number is learned
  std::vector<double> mean, std;                      // that given features of nodes are scaled by; empty: they are not
  double target_centre = 0.0;                         // a number that is learned is the output plus this
  std::vector<FeatureRange> ranges;                   // of node features, then of edge features; empty: not known
};

// The layout of a family's training data: `arrays` were made of graphs of `set` with these options.
template <class T>
GraphLayout graph_layout(const GraphSet& set, const GraphArrays<T>& arrays, const GraphFeatureOptions& options);

// The description of a model of this layout, and back. describe has no normalisation. The latter throws
// Exception{invalid_input} when the description does not fit itself.
ModelDescription describe_graphs(const GraphLayout& layout);
GraphLayout restore_layout(const ModelDescription& description, GraphTask task);

// New graphs with the numbers of labels and classes that the layout has. Fails with invalid_input, naming the graph and
// what it has that the model does not know, or lacks.
Result<GraphSet> align_graphs(const GraphLayout& layout, GraphSet graphs);

// The options that make arrays of such graphs.
GraphFeatureOptions layout_options(const GraphLayout& layout, GraphFeatureOptions options, bool targets_known);

// How many features of each graph, or of each node of a node task, are outside of their ranges, in the order of the
// graphs; empty when ranges are not known.
template <class T>
std::vector<std::size_t> outside_of_ranges(const GraphLayout& layout, const GraphArrays<T>& arrays);

}  // namespace gradloom
