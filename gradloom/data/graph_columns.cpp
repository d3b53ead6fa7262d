#include "gradloom/data/graph_columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

// Columns of the features that a graph gives its nodes.
std::size_t given_width(const Graph& g) {
  return g.sparse_features().empty() ? g.node_feature_width() : g.sparse_features().columns;
}

std::size_t node_width(NodeFeatures kind, const Graph& first, const GraphSet& set, const GraphFeatureOptions& o) {
  const bool labelled = !first.node_labels().empty();
  switch (kind) {
    case NodeFeatures::labels:
      if (!labelled) throw_invalid("the nodes have no labels to use as features");
      return set.node_labels.size();
    case NodeFeatures::degrees:
      return o.max_degree + 1;
    case NodeFeatures::identity: {
      std::size_t most = o.identities;
      for (const Graph& g : set.graphs) most = std::max<std::size_t>(most, g.nodes());
      return most;
    }
    case NodeFeatures::constant:
      return 1;
    case NodeFeatures::all:
      if (!labelled) throw_invalid("data.features = \"all\": the nodes have no labels");
      if (first.node_feature_width() == 0) throw_invalid("data.features = \"all\": the nodes have no dense features");
      return first.node_feature_width() + set.node_labels.size();
    case NodeFeatures::automatic:
    case NodeFeatures::given:
      break;
  }
  if (given_width(first) == 0) throw_invalid("the nodes have no features");
  return given_width(first);
}

// How a graph differs from the first one, as "has nodes with labels" and the same of the first; empty: it does not.
using Difference = std::pair<std::string, std::string>;

Difference with_or_without(const char* of, bool has, const char* what) {
  const auto say = [&](bool with) { return fmt::format("has {} {} {}", of, with ? "with" : "without", what); };
  return {say(has), say(!has)};
}

Difference widths(const char* of, std::size_t mine, std::size_t first) {
  const auto say = [&](std::size_t n) { return fmt::format("has {} feature{} of each {}", n, n == 1 ? "" : "s", of); };
  return {say(mine), say(first)};
}

struct Compared {
  bool given, labels, edge_labels;  // what has to be alike
};

Difference node_difference(const Graph& g, const Graph& first, const Compared& c) {
  if (c.labels && g.node_labels().empty() != first.node_labels().empty())
    return with_or_without("nodes", !g.node_labels().empty(), "labels");
  if (!c.given) return {};
  if (given_width(g) != given_width(first)) return widths("node", given_width(g), given_width(first));
  if (const bool sparse = !g.sparse_features().empty(); sparse == first.sparse_features().empty())
    return {sparse ? "has sparse features" : "has dense features", sparse ? "has dense ones" : "has sparse ones"};
  return {};
}

Difference edge_difference(const Graph& g, const Graph& first, const Compared& c) {
  if (g.edge_feature_width() != first.edge_feature_width())
    return widths("edge", g.edge_feature_width(), first.edge_feature_width());
  if (c.edge_labels && g.edge_labels().empty() != first.edge_labels().empty())
    return with_or_without("edges", !g.edge_labels().empty(), "labels");
  if (g.edge_weights().empty() != first.edge_weights().empty())
    return with_or_without("edges", !g.edge_weights().empty(), "weights");
  return {};
}

void refuse(const GraphSet& set, std::uint32_t which, const Graph& first, const Difference& d, const char* remedy) {
  if (d.first.empty()) return;
  throw_invalid(fmt::format("graph '{}' {}, but graph '{}' {}; {}", set.ids[which], d.first,
                            set.ids[static_cast<std::size_t>(&first - set.graphs.data())], d.second, remedy));
}

}  // namespace

const Graph& first_with_nodes(const GraphSet& set) {
  const auto found = std::ranges::find_if(set.graphs, [](const Graph& g) { return g.nodes() > 0; });
  return found == set.graphs.end() ? set.graphs.front() : *found;
}

GraphColumns graph_columns(const GraphSet& set, std::span<const std::uint32_t> which, const GraphFeatureOptions& o) {
  const Graph& nodes = first_with_nodes(set);
  const auto found = std::ranges::find_if(set.graphs, [](const Graph& g) { return g.edges() > 0; });
  const Graph& edges = found == set.graphs.end() ? set.graphs.front() : *found;
  GraphColumns columns;
  columns.nodes = resolve_features(o.nodes, set);
  columns.node_features = node_width(columns.nodes, nodes, set, o);
  columns.sparse = has_given(columns.nodes) && !nodes.sparse_features().empty();
  columns.edge_features =
      edges.edge_feature_width() + (o.edge_labels && !edges.edge_labels().empty() ? set.edge_labels.size() : 0);
  // What one graph made `automatic` leave out must not be found in another.
  const bool chosen = o.nodes == NodeFeatures::automatic && columns.nodes != NodeFeatures::given;
  const Compared compared{has_given(columns.nodes) || chosen, has_labels(columns.nodes) || chosen, o.edge_labels};
  for (const std::uint32_t w : which) {
    const Graph& g = set.graphs[w];
    if (g.nodes() > 0)
      refuse(set, w, nodes, node_difference(g, nodes, compared),
             "give the nodes of all graphs the same, or set data.features to what all of them have (\"degrees\" and "
             "\"constant\" need nothing of the file)");
    if (g.edges() > 0)
      refuse(set, w, edges, edge_difference(g, edges, compared), "give the edges of all graphs the same");
  }
  return columns;
}

}  // namespace gradloom
