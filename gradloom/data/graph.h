// Graphs as data: an immutable graph, and sets of graphs that share the names of their labels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gradloom/base/result.h"

namespace gradloom {

enum class Direction { undirected, directed };
enum class LoopPolicy { allow, refuse };  // edges from a node to itself

inline constexpr std::uint32_t kUnlabelled = 0xffffffffu;  // a class or label that is not known

// A sparse row-major matrix; columns of a row ascend. Empty: there is none.
struct SparseRows {
  std::uint32_t columns = 0;
  std::vector<std::uint32_t> row_ptr;  // (rows + 1)
  std::vector<std::uint32_t> column;   // (values)
  std::vector<double> value;           // (values)
  bool empty() const { return row_ptr.empty(); }
};

// N nodes, M edges as they were given, E arcs: an undirected edge is two arcs, a directed edge or a loop is one. Arcs
// are ordered by (destination, source); the position of an arc in that order is its slot. What belongs to edges
// (labels, weights, features) is stored once per edge, and `arc_edge` leads there from a slot. Numbers are double, as
// read; a batch converts to the scalar of its model.
class Graph {
 public:
  std::uint32_t nodes() const { return nodes_; }
  std::uint32_t edges() const { return static_cast<std::uint32_t>(edge_from_.size()); }
  std::uint32_t arcs() const { return static_cast<std::uint32_t>(in_source_.size()); }
  Direction direction() const { return direction_; }

  // Arcs into node v: slots in_ptr[v] .. in_ptr[v+1]-1, sources ascending.
  std::span<const std::uint32_t> in_ptr() const { return in_ptr_; }        // (N + 1)
  std::span<const std::uint32_t> in_source() const { return in_source_; }  // (E)
  // Arcs out of node u: positions out_ptr[u] .. out_ptr[u+1]-1, targets ascending; tpos is the slot of the same arc.
  std::span<const std::uint32_t> out_ptr() const { return out_ptr_; }        // (N + 1)
  std::span<const std::uint32_t> out_target() const { return out_target_; }  // (E)
  std::span<const std::uint32_t> tpos() const { return tpos_; }              // (E)
  std::span<const std::uint32_t> arc_edge() const { return arc_edge_; }      // (E), by slot

  std::span<const std::uint32_t> edge_from() const { return edge_from_; }  // (M)
  std::span<const std::uint32_t> edge_to() const { return edge_to_; }      // (M)

  // Each of these is empty where the graph has none.
  std::span<const std::uint32_t> node_labels() const { return node_labels_; }    // (N)
  std::span<const std::uint32_t> node_classes() const { return node_classes_; }  // (N), kUnlabelled where unknown
  std::span<const std::uint32_t> edge_labels() const { return edge_labels_; }    // (M)
  std::span<const double> edge_weights() const { return edge_weights_; }         // (M)
  std::uint32_t node_feature_width() const { return node_width_; }               // Fn, dense features only
  std::span<const double> node_features() const { return node_features_; }       // (N, Fn)
  const SparseRows& sparse_features() const { return sparse_features_; }         // (N, columns)
  std::uint32_t edge_feature_width() const { return edge_width_; }               // Fe
  std::span<const double> edge_features() const { return edge_features_; }       // (M, Fe)
  std::optional<std::uint32_t> graph_class() const { return graph_class_; }
  std::optional<double> graph_target() const { return graph_target_; }

 private:
  friend class GraphBuilder;
  friend class GraphSetBuilder;
  friend struct GraphSet;

  std::uint32_t nodes_ = 0, node_width_ = 0, edge_width_ = 0;
  Direction direction_ = Direction::undirected;
  std::vector<std::uint32_t> in_ptr_, in_source_, out_ptr_, out_target_, tpos_, arc_edge_;
  std::vector<std::uint32_t> edge_from_, edge_to_, edge_labels_, node_labels_, node_classes_;
  std::vector<double> edge_weights_, node_features_, edge_features_;
  SparseRows sparse_features_;
  std::optional<std::uint32_t> graph_class_;
  std::optional<double> graph_target_;
};

// What one edge may carry; all edges of a graph carry the same.
struct EdgeValues {
  std::optional<std::uint32_t> label;
  std::optional<double> weight;
  std::span<const double> features;
};

// What one node may carry; all nodes of a graph carry the same.
struct NodeValues {
  std::optional<std::uint32_t> label;
  std::optional<std::uint32_t> node_class;  // kUnlabelled: has one, but it is not known
  std::span<const double> features;
};

// Puts a graph together and refuses what is wrong with it at the call that brings it, so that a reader can say where it
// stands: an edge to a node that does not exist, an edge that is there already (in either direction when undirected), a
// loop where they are refused, a value that other nodes or edges lack or have, numbers that are not finite.
class GraphBuilder {
 public:
  explicit GraphBuilder(Direction direction, LoopPolicy loops = LoopPolicy::allow);

  std::uint32_t nodes() const { return graph_.nodes_; }
  bool has_edge(std::uint32_t from, std::uint32_t to) const { return seen_.contains(key(from, to)); }
  Result<void> add_node(const NodeValues& values = {});
  Result<void> add_edge(std::uint32_t from, std::uint32_t to, const EdgeValues& values = {});
  void set_class(std::uint32_t graph_class) { graph_.graph_class_ = graph_class; }
  void set_target(double target) { graph_.graph_target_ = target; }
  // Replaces dense features. Fails when the matrix is not (nodes, columns).
  Result<void> set_sparse_features(SparseRows rows);
  // The builder is empty afterwards.
  Graph build();

 private:
  std::uint64_t key(std::uint32_t from, std::uint32_t to) const;

  Graph graph_;
  LoopPolicy loops_;
  std::unordered_set<std::uint64_t> seen_;
};

// Names 0, 1, ... in the order in which they came.
class LabelTable {
 public:
  LabelTable() = default;
  explicit LabelTable(std::vector<std::string> names);
  std::uint32_t intern(std::string_view name);
  std::optional<std::uint32_t> find(std::string_view name) const;
  const std::vector<std::string>& names() const { return names_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(names_.size()); }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> index_;
};

// Nodes of graph `graph` that belong to a part of the data, such as "train".
struct NodeSplit {
  std::uint32_t graph = 0;
  std::string name;
  std::vector<std::uint32_t> nodes;  // ascending
};

// Graphs that share label tables. Names are sorted: by value when all are numbers, else by bytes.
struct GraphSet {
  std::vector<Graph> graphs;
  std::vector<std::string> ids;     // of each graph, as in its file; not necessarily different
  std::vector<std::string> splits;  // of each graph ("train", ...); empty: the file names none
  LabelTable node_labels, edge_labels, graph_classes, node_classes;
  std::vector<NodeSplit> node_splits;
  std::vector<std::vector<std::string>> node_ids;                   // of each graph, as in its file; empty: 0, 1, ...
  std::vector<std::string> node_feature_names, edge_feature_names;  // of dense features; empty: they have none

  // The id of a node.
  std::string node_id(std::size_t graph, std::uint32_t node) const;
  std::size_t size() const { return graphs.size(); }
  // The graph with this id; fails with not_found (naming the nearest id), or invalid_input when several have it.
  Result<std::size_t> find(std::string_view id) const;
  // Appends the graphs of `other`, whose labels keep their names and may get other numbers. Features keep their names
  // where both have the same ones.
  void append(GraphSet other);
};

// Collects the graphs of a file; finish() sorts the tables.
class GraphSetBuilder {
 public:
  LabelTable node_labels, edge_labels, graph_classes, node_classes;

  void add(GraphBuilder& graph, std::string id, std::string split = "");
  std::size_t size() const { return set_.graphs.size(); }
  void add_node_split(NodeSplit split) { set_.node_splits.push_back(std::move(split)); }
  // Names the nodes of the graph that was added last.
  void name_nodes(std::vector<std::string> ids);
  // Names the dense features of the nodes and edges of the graph that was added last; empty: it has none. Fails when
  // they are as many as those of the graphs before it, but others.
  Result<void> name_features(const std::vector<std::string>& nodes, const std::vector<std::string>& edges);
  GraphSet finish();

 private:
  GraphSet set_;
};

}  // namespace gradloom
