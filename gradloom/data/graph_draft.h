// A graph as formats with attributes describe it (GraphML, GML, node-link JSON, tables), before its values have roles.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gradloom/data/graph_source.h"

namespace gradloom {

// Named attributes of a node, an edge or a graph.
class GraphAttributes {
 public:
  // False: there is one of this name already.
  bool add_text(std::string_view name, std::string_view text);
  bool add_number(std::string_view name, double value, std::string_view text);
  // Appends to the numbers of that name, if there are some. False: it is no list of numbers.
  bool append_number(std::string_view name, double value);

  bool has(std::string_view name) const;
  // Removes an attribute and returns it as text; nothing when there is none.
  std::optional<std::string> take(std::string_view name);

  // What is left, in the order of names: texts are the label (`name=value name=value` when there are several), numbers
  // the features.
  std::optional<std::string> label();
  std::vector<double> features();

  // Names in their order, with how many numbers each has: 0 for a text.
  std::vector<std::pair<std::string, std::size_t>> kinds();

 private:
  struct Value {
    std::string name, text;
    std::vector<double> numbers;  // empty: a text
  };
  Value* find(std::string_view name);
  void sort();

  std::vector<Value> values_;
};

// What the features of all nodes, or of all edges, of a graph are called.
class SharedFeatures {
 public:
  // Says what is wrong when features are not those that were seen before: one of another name, or one that was a text.
  // Nothing about how many there are: builders of graphs tell that. Empty: nothing is wrong.
  std::string see(GraphAttributes& attributes);
  // NAME, and NAME[0], NAME[1], ... where it has several numbers.
  std::vector<std::string> names() const;

 private:
  std::optional<std::vector<std::pair<std::string, std::size_t>>> kinds_;  // of the first
};

struct NodeDraft {
  std::string id;
  GraphAttributes attributes;
};

struct EdgeDraft {
  std::string from, to;  // ids
  GraphAttributes attributes;
};

struct GraphDraft {
  std::string id;
  Direction direction = Direction::undirected;
  std::vector<NodeDraft> nodes;
  std::vector<EdgeDraft> edges;
  GraphAttributes attributes;              // class, target and split have a meaning; others are ignored
  std::vector<std::string> feature_names;  // of nodes; empty: those of their attributes
  // Where a node or an edge stands, for messages: "file:line" or the like.
  std::function<std::string(std::size_t)> node_place, edge_place;
};

// Gives attributes their roles and adds the graph. Of nodes: `source.class_column` is the class, which may be missing,
// `split` a part of the data; of edges: `weight`. An undirected edge may stand there in both directions with the same
// values. Throws invalid_input (with the place) on ids that are there twice or do not exist, what SharedFeatures finds,
// and what GraphBuilder refuses.
void add_draft(GraphDraft draft, const GraphSource& source, GraphSetBuilder& set);

}  // namespace gradloom
