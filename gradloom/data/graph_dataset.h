// GraphDataset: graphs in memory as one block-diagonal graph, and its batches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/data/graph.h"
#include "gradloom/data/graph_batch.h"

namespace gradloom {

enum class GraphTask {
  node,   // a class of every node; all graphs are one batch
  graph,  // a class or target of every graph
};
inline constexpr Choice<GraphTask> kGraphTasks[] = {
    {GraphTask::node, "nodes", "a class of each node of one graph"},
    {GraphTask::graph, "graphs", "a class or a number for each of many graphs"},
};

// What becomes the features of nodes and edges.
enum class NodeFeatures {
  automatic,  // all where labels repeat beside dense features, else given, else labels, else degrees
  given,      // as the file has them, sparse or dense
  labels,     // a 0/1 column for each label
  all,        // given dense features, then labels
  degrees,    // a 0/1 column for each number of neighbours, the last for all larger ones
  identity,   // a 0/1 column for each node of the largest graph
  constant,   // one column of ones
};
inline constexpr Choice<NodeFeatures> kNodeFeatures[] = {
    {NodeFeatures::automatic, "auto", "given and labels, else one of them, else degrees"},
    {NodeFeatures::given, "given", "as the file has them"},
    {NodeFeatures::labels, "labels", "a column for each label"},
    {NodeFeatures::all, "all", "as the file has them, and a column for each label"},
    {NodeFeatures::degrees, "degrees", "a column for each number of neighbours"},
    {NodeFeatures::identity, "identity", "a column for each node"},
    {NodeFeatures::constant, "constant", "one column of ones"},
};

struct GraphFeatureOptions {
  NodeFeatures nodes = NodeFeatures::automatic;
  std::size_t max_degree = 64;    // degrees: columns - 1
  bool normalise_rows = false;    // given features: divided by their row's sum, where that is not 0
  bool standardise = false;       // given dense features: (x - mean) / std; labels stay
  std::vector<double> mean, std;  // of `standardise`, one for each feature; see measure_features()
  double target_centre = 0.0;     // of targets that are numbers: subtracted in double
  bool edge_labels = false;       // edge labels become edge features
  bool targets_known = true;      // false: what is to be learned is not in the graphs, which need no class or target
  std::size_t identities = 0;     // identity: columns; 0: as many as the largest graph has nodes
};

// What `automatic` means for these graphs, of which there is one at least. Labels that five nodes or more share on
// average join dense features; others are taken for names of nodes.
NodeFeatures resolve_features(NodeFeatures asked, const GraphSet& set);

// Whether a kind has columns of labels, or of what the file gives.
inline bool has_labels(NodeFeatures kind) { return kind == NodeFeatures::labels || kind == NodeFeatures::all; }
inline bool has_given(NodeFeatures kind) { return kind == NodeFeatures::given || kind == NodeFeatures::all; }

// Sets mean and std to those of the given features over all nodes, if `standardise` asks for them and they are
// dense. The standard deviation of a constant is 1.
void measure_features(const GraphSet& set, GraphFeatureOptions& options);

// Sets target_centre to what rows with the targets of these graphs would have (choose_centres(), rows.h); 0 where they
// have none. Throws invalid_input when T cannot compute with their spread.
template <class T>
void measure_targets(const GraphSet& set, std::span<const std::uint32_t> which, GraphFeatureOptions& options);

// A sentence for each feature, weight or target that float32 cannot hold, as float32_warning() (rows.h) judges it.
// `options` are those of measure_features() and measure_targets().
std::vector<std::string> float32_warnings(const GraphSet& set, const GraphFeatureOptions& options);

// The arrays of all graphs, shared by the parts of one data set.
template <class T>
struct GraphArrays {
  GraphTask task = GraphTask::graph;
  std::size_t nodes = 0, graphs = 0, features = 0, stride = 0, outputs = 0, edge_features = 0, edge_stride = 0;
  std::vector<std::uint32_t> ptr, source, out_ptr, out_target, slot, graph_ptr;
  std::vector<T> x, root, with_self, without, edge_weight, edge_x;
  std::vector<std::uint32_t> feature_ptr, feature_column, feature_out_ptr, feature_row, feature_slot;
  std::vector<T> feature_value;
  std::vector<std::uint32_t> row_of;  // node tasks: the row of each node, nodes in the order of the graphs
  std::vector<std::uint32_t> label;   // of rows; classification
  std::vector<T> target;              // (rows, 1); regression: without target_centre
  std::vector<double> exact_target;   // of centred targets, before rounding; empty: as `target`
  double target_centre = 0.0;
  std::vector<std::string> class_names;

  std::size_t rows() const { return task == GraphTask::node ? nodes : graphs; }
  bool sparse() const { return !feature_ptr.empty(); }
};

// Graphs `which` of a set, in this order. In node tasks the nodes of a graph have rows in its locality_order(), which
// fixes the order of sums over nodes; elsewhere in their own. Sparse features stay sparse for node tasks and become
// dense otherwise; columns are those of graph_columns(). Throws as that does, when labels or classes are missing, or
// when indices leave 32 bits.
template <class T>
GraphArrays<T> make_graph_arrays(const GraphSet& set, std::span<const std::uint32_t> which, GraphTask task,
                                 const GraphFeatureOptions& options);

// Memory for batches of up to `max_size` graphs, whichever they are.
template <class T>
class GraphDataset;
template <class T>
class GraphBatchStorage {
 public:
  GraphBatchStorage(const GraphDataset<T>& dataset, std::size_t max_size);

 private:
  friend class GraphDataset<T>;
  std::size_t max_size_;
  std::vector<std::uint32_t> sample_;
  GraphArrays<T> arrays_;
};

// Immutable; instantiated for float and double. Node tasks: size() is the number of nodes, the batch is always all of
// them, and `weight` (nodes, in the order of the graphs) says which ones count.
template <class T>
class GraphDataset {
 public:
  using Storage = GraphBatchStorage<T>;

  GraphDataset(std::shared_ptr<const GraphArrays<T>> arrays, std::vector<T> weight);

  std::size_t size() const { return arrays_->rows(); }
  const GraphArrays<T>& arrays() const { return *arrays_; }
  // The row of a node (node tasks; nodes are counted through the graphs) or of a graph.
  std::size_t row_of(std::size_t n) const { return arrays_->row_of.empty() ? n : arrays_->row_of[n]; }
  // The most nodes and arcs that a batch of this many graphs can have.
  std::size_t largest_nodes(std::size_t graphs) const { return at(most_nodes_, graphs); }
  std::size_t largest_arcs(std::size_t graphs) const { return at(most_arcs_, graphs); }

  Storage make_storage(std::size_t max_size) const { return Storage(*this, max_size); }
  GraphBatch<T> all() const;
  // Copies graphs into `storage`; never allocates. Throws for node tasks, and as RowDataset::gather does.
  GraphBatch<T> gather(std::span<const std::uint32_t> graphs, Storage& storage) const;

 private:
  static std::size_t at(const std::vector<std::size_t>& sums, std::size_t count) {
    return sums[std::min(count, sums.size() - 1)];
  }

  std::shared_ptr<const GraphArrays<T>> arrays_;
  std::vector<T> weight_;
  std::vector<std::size_t> most_nodes_, most_arcs_;  // of the largest 0, 1, 2, ... graphs
};

}  // namespace gradloom
