#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gradloom/data/graph_node_link.h"
#include "gradloom/data/graph_source.h"
#include "gradloom/io/json.h"
#include "gradloom/io/nearest.h"

namespace gradloom {
namespace {

using nlohmann::json;
constexpr std::uint32_t kMostCounted = 1u << 24;  // nodes of all graphs that are given as a number only

class JsonParser {
 public:
  explicit JsonParser(const GraphSource& source) : source_(source) {}

  GraphSet run(std::string_view text) {
    json root = parse_json(text, source_.path.string()).or_throw();
    direction_ = source_.direction;
    if (root.is_object() && root.contains("graphs")) {
      check_keys(root, "the file", {"graphs", "directed"});
      read_directed(root, "the file");
      root = json(root["graphs"]);
    }
    if (root.is_object()) root = json::array({root});
    if (!root.is_array() || root.empty())
      fail("the file", "must hold a graph, a list of graphs, or {\"graphs\": [...]}");
    for (std::size_t g = 0; g < root.size(); ++g) {
      const std::string where = fmt::format("graphs[{}]", g);
      if (is_node_link(root[g]))
        add_node_link(root[g], where, g, source_, set_);
      else
        read_graph(root[g], where, g);
    }
    return set_.finish();
  }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& message) const {
    throw_invalid(fmt::format("{}: {} {}", source_.path.string(), where, message));
  }
  void check_keys(const json& object, const std::string& where, std::vector<std::string> known) const {
    for (const auto& [key, _] : object.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        fail(where, fmt::format("has the unknown key '{}'; the nearest is '{}'", key, nearest_name(key, known)));
  }
  void read_directed(const json& object, const std::string& where) {
    if (!object.contains("directed")) return;
    if (!object["directed"].is_boolean()) fail(where + ".directed", "must be true or false");
    direction_ = object["directed"].get<bool>() ? Direction::directed : Direction::undirected;
  }
  // A name: text, or a number as it is written.
  std::string name(const json& value, const std::string& where) const {
    if (!value.is_string() && !value.is_number() && !value.is_boolean()) fail(where, "must be a text or a number");
    return name_in_json(value, fmt::format("{}: {}", source_.path.string(), where));
  }
  double number(const json& value, const std::string& where) const {
    if (!value.is_number()) fail(where, "must be a number");
    return value.get<double>();
  }
  std::uint32_t index(const json& value, const std::string& where) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 0x7fffffff)
      fail(where, "must be the number of a node");
    return value.get<std::uint32_t>();
  }
  std::vector<double> numbers(const json& list, const std::string& where) const {
    if (!list.is_array()) fail(where, "must be a list of numbers");
    std::vector<double> values;
    for (const json& value : list) values.push_back(number(value, where));
    return values;
  }

  void read_graph(const json& g, const std::string& where, std::size_t position) {
    if (!g.is_object()) fail(where, "must be an object with nodes and edges");
    check_keys(g, where, {"id", "split", "class", "target", "directed", "nodes", "edges"});
    const Direction outer = direction_;
    read_directed(g, where);
    GraphBuilder graph(direction_, source_.loops);
    direction_ = outer;
    if (!g.contains("nodes")) fail(where, "has no nodes");
    read_nodes(g["nodes"], where + ".nodes", graph);
    if (g.contains("edges")) read_edges(g["edges"], where + ".edges", graph);
    if (g.contains("class")) graph.set_class(set_.graph_classes.intern(name(g["class"], where + ".class")));
    if (g.contains("target")) graph.set_target(number(g["target"], where + ".target"));
    set_.add(graph, g.contains("id") ? name(g["id"], where + ".id") : fmt::format("{}", position),
             g.contains("split") ? name(g["split"], where + ".split") : "");
  }

  void read_nodes(const json& nodes, const std::string& where, GraphBuilder& graph) {
    if (nodes.is_number_unsigned()) {
      counted_ += std::min<std::uint64_t>(nodes.get<std::uint64_t>(), kMostCounted + 1u);
      if (counted_ > kMostCounted) fail(where, fmt::format("are more than {}, over all graphs", kMostCounted));
      for (std::uint32_t i = 0; i < nodes.get<std::uint32_t>(); ++i) graph.add_node().or_throw();
      return;
    }
    if (!nodes.is_array()) fail(where, "must be a whole number from 0, or a list");
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::string at = fmt::format("{}[{}]", where, i);
      NodeValues values;
      std::vector<double> features;
      if (nodes[i].is_object()) {
        check_keys(nodes[i], at, {"label", "class", "features"});
        if (nodes[i].contains("label")) values.label = set_.node_labels.intern(name(nodes[i]["label"], at + ".label"));
        if (nodes[i].contains("class"))
          values.node_class = nodes[i]["class"].is_null()
                                  ? kUnlabelled
                                  : set_.node_classes.intern(name(nodes[i]["class"], at + ".class"));
        if (nodes[i].contains("features")) features = numbers(nodes[i]["features"], at + ".features");
        values.features = features;
      } else {
        values.label = set_.node_labels.intern(name(nodes[i], at));
      }
      if (auto added = graph.add_node(values); !added) fail(at + ":", added.error().message);
    }
  }

  void read_edges(const json& edges, const std::string& where, GraphBuilder& graph) {
    if (!edges.is_array()) fail(where, "must be a list");
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const std::string at = fmt::format("{}[{}]", where, e);
      const json& edge = edges[e];
      EdgeValues values;
      std::vector<double> features;
      std::uint32_t from = 0, to = 0;
      if (edge.is_array() && (edge.size() == 2 || edge.size() == 3)) {
        from = index(edge[0], at + "[0]");
        to = index(edge[1], at + "[1]");
        if (edge.size() == 3) values.label = set_.edge_labels.intern(name(edge[2], at + "[2]"));
      } else if (edge.is_object() && edge.contains("from") && edge.contains("to")) {
        check_keys(edge, at, {"from", "to", "label", "weight", "features"});
        from = index(edge["from"], at + ".from");
        to = index(edge["to"], at + ".to");
        if (edge.contains("label")) values.label = set_.edge_labels.intern(name(edge["label"], at + ".label"));
        if (edge.contains("weight")) values.weight = number(edge["weight"], at + ".weight");
        if (edge.contains("features")) features = numbers(edge["features"], at + ".features");
        values.features = features;
      } else {
        fail(at, "must be [from, to], [from, to, label] or an object with from and to");
      }
      if (auto added = graph.add_edge(from, to, values); !added) fail(at + ":", added.error().message);
    }
  }

  const GraphSource& source_;
  Direction direction_ = Direction::undirected;
  GraphSetBuilder set_;
  std::uint64_t counted_ = 0;
};

}  // namespace

Result<GraphSet> parse_graph_json(std::string_view text, const GraphSource& source) try {
  return JsonParser(source).run(text);
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom
