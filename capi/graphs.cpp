// Sets of graphs, and their edit distances.
#include <fmt/format.h>

#include <cmath>

#include "capi/arrays.h"
#include "capi/hooks.h"
#include "gradloom/data/graph_source.h"
#include "gradloom/ged/ged.h"

namespace gradloom::capi {
namespace {

using nlohmann::json;

// Numbers of names: -1 is kUnlabelled where that is allowed.
std::vector<std::uint32_t> codes(const gradloom_array& array, const char* argument, std::size_t count,
                                 std::size_t names, bool unknown_allowed) {
  if (!present(array)) return {};
  std::vector<std::uint32_t> found;
  for (const std::int64_t code : integers(array, argument, count)) {
    if (code == -1 && unknown_allowed) {
      found.push_back(kUnlabelled);
      continue;
    }
    if (code < 0 || code >= static_cast<std::int64_t>(names))
      throw_invalid(fmt::format("{} has the number {}, but there are {} names", argument, code, names));
    found.push_back(static_cast<std::uint32_t>(code));
  }
  return found;
}

// The arcs of compressed rows.
struct Arcs {
  std::vector<std::int64_t> row_ptr, column;
};

Arcs arcs_of(const gradloom_graph& g) {
  const auto nodes = static_cast<std::size_t>(g.nodes);
  Arcs arcs;
  arcs.row_ptr = integers(g.row_ptr, "row_ptr", nodes + 1);
  if (arcs.row_ptr[0] != 0) throw_invalid(fmt::format("row_ptr begins with {}, not 0", arcs.row_ptr[0]));
  for (std::size_t v = 0; v < nodes; ++v)
    if (arcs.row_ptr[v + 1] < arcs.row_ptr[v])
      throw_invalid(fmt::format("row_ptr falls from {} to {} at node {}", arcs.row_ptr[v], arcs.row_ptr[v + 1], v));
  const std::int64_t count = arcs.row_ptr.back();
  if (count > (std::int64_t{1} << 31))
    throw_invalid(fmt::format("row_ptr ends with {}, which is too many arcs", count));
  if (count > 0) arcs.column = integers(g.column, "column", static_cast<std::size_t>(count));
  for (const std::int64_t to : arcs.column)
    if (to < 0 || to >= g.nodes) throw_invalid(fmt::format("column names node {}; there are {}", to, g.nodes));
  return arcs;
}

struct EdgeColumns {
  std::vector<std::uint32_t> labels;
  std::vector<double> weights;

  EdgeValues at(std::size_t arc) const {
    EdgeValues values;
    if (!labels.empty()) values.label = labels[arc];
    if (!weights.empty()) values.weight = weights[arc];
    return values;
  }
  bool equal(std::size_t a, std::size_t b) const {
    return (labels.empty() || labels[a] == labels[b]) && (weights.empty() || weights[a] == weights[b]);
  }
};

void add_nodes(const GraphsObject& set, const gradloom_graph& g, GraphBuilder& builder) {
  const auto nodes = static_cast<std::size_t>(g.nodes);
  const auto labels = codes(g.node_labels, "node_labels", nodes, set.node_labels.size(), false);
  const auto classes = codes(g.node_classes, "node_classes", nodes, set.node_classes.size(), true);
  std::vector<double> features;
  std::size_t width = 0;
  if (present(g.node_features)) {
    const MatrixView view = matrix(&g.node_features, "node_features");
    if (view.rows() != nodes) throw_invalid(fmt::format("node_features has {} rows for {} nodes", view.rows(), nodes));
    width = view.columns();
    features = view.finite_values("node_features");
  }
  for (std::size_t v = 0; v < nodes; ++v) {
    NodeValues values;
    if (!labels.empty()) values.label = labels[v];
    if (!classes.empty()) values.node_class = classes[v];
    values.features = std::span(features).subspan(v * width, width);
    builder.add_node(values).or_throw();
  }
}

// An undirected edge that is there in both directions is one edge.
void add_edges(const GraphsObject& set, const gradloom_graph& g, GraphBuilder& builder) {
  const Arcs arcs = arcs_of(g);
  EdgeColumns columns{codes(g.edge_labels, "edge_labels", arcs.column.size(), set.edge_labels.size(), false), {}};
  if (present(g.edge_weights)) columns.weights = numbers(g.edge_weights, "edge_weights", arcs.column.size());
  std::unordered_map<std::uint64_t, std::size_t> first;
  for (std::int64_t u = 0; u < g.nodes; ++u)
    for (auto a = static_cast<std::size_t>(arcs.row_ptr[static_cast<std::size_t>(u)]);
         a < static_cast<std::size_t>(arcs.row_ptr[static_cast<std::size_t>(u) + 1]); ++a) {
      const std::int64_t v = arcs.column[a];
      const auto key = [](std::int64_t from, std::int64_t to) {
        return static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to);
      };
      if (set.direction == Direction::undirected && u != v) {
        const auto back = first.find(key(v, u));
        if (back != first.end()) {
          if (!columns.equal(back->second, a))
            throw_invalid(fmt::format("the edge between {} and {} has different values in its two directions", v, u));
          first.erase(back);
          continue;
        }
        first.emplace(key(u, v), a);
      }
      builder.add_edge(static_cast<std::uint32_t>(u), static_cast<std::uint32_t>(v), columns.at(a)).or_throw();
    }
}

void add_parts(GraphsObject& set, const gradloom_graph& g, std::uint32_t number) {
  if (!present(g.node_parts)) return;
  constexpr const char* kParts[] = {"train", "validation", "test"};
  const auto parts = integers(g.node_parts, "node_parts", static_cast<std::size_t>(g.nodes));
  for (int p = 1; p <= 3; ++p) {
    NodeSplit split{number, kParts[p - 1], {}};
    for (std::size_t v = 0; v < parts.size(); ++v) {
      if (parts[v] < 0 || parts[v] > 3)
        throw_invalid(fmt::format("node_parts of node {} is {}; parts are 0 to 3", v, parts[v]));
      if (parts[v] == p) split.nodes.push_back(static_cast<std::uint32_t>(v));
    }
    if (!split.nodes.empty()) set.builder.add_node_split(std::move(split));
  }
}

void add_graph(GraphsObject& set, const gradloom_graph& g) {
  if (set.set) throw_invalid("graphs: the set is already in use and cannot be changed; create a new one");
  if (g.nodes < 0 || g.nodes > 0x7fffffff) throw_invalid(fmt::format("nodes is {}", g.nodes));
  GraphBuilder builder(set.direction);
  add_nodes(set, g, builder);
  add_edges(set, g, builder);
  if (g.graph_class >= 0) {
    if (g.graph_class >= static_cast<std::int64_t>(set.graph_classes.size()))
      throw_invalid(fmt::format("graph_class is {}, but there are {} names", g.graph_class, set.graph_classes.size()));
    builder.set_class(static_cast<std::uint32_t>(g.graph_class));
  }
  if (std::isinf(g.graph_target)) throw_invalid("graph_target is infinite");
  if (!std::isnan(g.graph_target)) builder.set_target(g.graph_target);
  const auto number = static_cast<std::uint32_t>(set.builder.size());
  add_parts(set, g, number);
  set.builder.add(builder, fmt::format("{}", number));
}

std::vector<std::string> interned(Settings& settings, const char* key, LabelTable& table) {
  std::vector<std::string> names = settings.names(key);
  for (const std::string& name : names)
    if (table.find(name))
      throw_invalid(fmt::format("settings: '{}' has the name '{}' twice", key, name));
    else
      table.intern(name);
  return names;
}

// What all functions of edit distances have in their settings.
struct GedSettings {
  Settings all;
  ged::Costs costs;
  ged::Options options;
  unsigned threads = 0;
  bool path = true;  // of pairs: the edits are asked for

  enum class Of { pair, set };

  GedSettings(const char* text, Of of) : all(text) {
    const json& given_costs = all.json("costs");
    costs = given_costs.is_null() ? ged::uniform_costs() : ged::costs_of_json(given_costs, "costs").or_throw();
    const double seconds = all.value("seconds", 0.0);
    if (!(seconds >= 0)) throw_invalid(fmt::format("settings: 'seconds' is {}", seconds));
    if (seconds > 0) options.limits.seconds = seconds;
    const std::uint64_t expansions = all.value("expansions", std::uint64_t{0});
    if (expansions > 0) options.limits.expansions = expansions;
    if (of == Of::set && (all.has("solver") || all.has("ties") || all.has("path")))
      throw_invalid("settings: 'solver', 'ties' and 'path' are for pairs");
    options.solver = value_of<ged::Solver>(ged::kSolvers, all.value("solver", std::string("dfs")), "solver").or_throw();
    const std::string ties = all.value("ties", std::string("smallest"));
    if (ties != "smallest" && ties != "any")
      throw_invalid(fmt::format("settings: 'ties' is \"{}\"; there are smallest and any", ties));
    options.ties = ties == "any" ? ged::Ties::any : ged::Ties::smallest;
    if (all.has("threshold")) options.threshold = all.value("threshold", 0.0);
    path = all.value("path", true);
    threads = all.threads();
    all.done();
  }
};

// `heard` must outlive them.
ged::AllPairsOptions pairs_options(const GedSettings& s, const Hooks& heard) {
  ged::AllPairsOptions options{.limits = s.options.limits, .progress = {}, .stop = &heard.stop()->set};
  if (heard.wants_progress())
    options.progress = [&](std::size_t done, std::size_t total) { heard.tell({{"done", done}, {"total", total}}); };
  return options;
}

std::size_t graph_number(const GraphSet& set, std::int64_t number, const char* argument) {
  if (number < 0 || static_cast<std::size_t>(number) >= set.size())
    throw_invalid(fmt::format("{} is {}, but the set has {} graphs, counted from 0", argument, number, set.size()));
  return static_cast<std::size_t>(number);
}

// Written member by member: a list of them would be copied, which takes as long as a tenth of a small search.
json distance_json(const ged::Distance& d) {
  json found;
  json& mapping = found["mapping"] = json::array();
  for (const std::uint32_t image : d.mapping) mapping.push_back(image == ged::kErased ? json(nullptr) : json(image));
  found["lower"] = d.lower;
  found["upper"] = d.upper;
  found["exact"] = d.exact;
  found["smallest"] = d.smallest;
  found["expanded"] = d.expanded;
  found["seconds"] = d.seconds;
  found["within"] = d.within ? json(*d.within) : json(nullptr);
  return found;
}

}  // namespace
}  // namespace gradloom::capi

using namespace gradloom;
using namespace gradloom::capi;

int gradloom_graphs_new(const char* settings, gradloom_handle* graphs) {
  return call([&] {
    given(graphs, "graphs");
    Settings s(settings);
    auto set = std::make_shared<GraphsObject>();
    set->direction = s.value("directed", false) ? Direction::directed : Direction::undirected;
    set->node_labels = interned(s, "node_labels", set->builder.node_labels);
    set->edge_labels = interned(s, "edge_labels", set->builder.edge_labels);
    set->node_classes = interned(s, "node_classes", set->builder.node_classes);
    set->graph_classes = interned(s, "graph_classes", set->builder.graph_classes);
    s.done();
    *graphs = open_object(std::move(set));
  });
}

int gradloom_graphs_add(gradloom_handle graphs, const gradloom_graph* graph) {
  return call([&] { add_graph(*Used<GraphsObject>(graphs, "graphs"), *given(graph, "graph")); });
}

int gradloom_graphs_load(const char* path, gradloom_handle* graphs) {
  return call([&] {
    given(graphs, "graphs");
    auto set = std::make_shared<GraphsObject>();
    set->set = std::make_shared<const GraphSet>(load_graphs({.path = given(path, "path")}).or_throw());
    *graphs = open_object(std::move(set));
  });
}

int gradloom_graphs_count(gradloom_handle graphs, int64_t* count) {
  return call([&] {
    given(count, "count");
    const Used<GraphsObject> used(graphs, "graphs");
    *count = static_cast<int64_t>(used->set ? used->set->size() : used->builder.size());
  });
}

int gradloom_ged_pair(gradloom_handle graphs, int64_t first, int64_t second, const char* settings,
                      const gradloom_hooks* hooks, char** json) {
  return call([&] {
    given(json, "json");
    GedSettings s(settings, GedSettings::Of::pair);
    const Hooks heard(hooks);
    s.options.stop = &heard.stop()->set;
    const std::shared_ptr<const GraphSet> set = Used<GraphsObject>(graphs, "graphs")->finished();
    const Graph &a = set->graphs[graph_number(*set, first, "first")],
                &b = set->graphs[graph_number(*set, second, "second")];
    const ged::CostTable costs(s.costs, set->node_labels, set->edge_labels);
    const Exec ex({.threads = s.threads});
    const ged::Distance d = ged::edit_distance(ex, a, b, costs, s.options);
    nlohmann::json result = distance_json(d);
    if (s.path)
      for (const ged::EditOperation& e : ged::edit_path(a, b, costs, d.mapping))
        result["path"].push_back({{"edit", ged::edit_name(e.edit)}, {"from", e.from}, {"to", e.to}, {"cost", e.cost}});
    *json = copy_text(result.dump());
  });
}

int gradloom_ged_matrix(gradloom_handle graphs, const char* settings, const gradloom_hooks* hooks,
                        const gradloom_array* lower, const gradloom_array* upper) {
  return call([&] {
    const GedSettings s(settings, GedSettings::Of::set);
    const Hooks heard(hooks);
    if (s.options.threshold) throw_invalid("settings: 'threshold' is for pairs and searches");
    const std::shared_ptr<const GraphSet> set = Used<GraphsObject>(graphs, "graphs")->finished();
    const OutMatrix low(lower, "lower"), high(upper, "upper");
    low.check(set->size(), set->size());
    high.check(set->size(), set->size());
    const ged::CostTable costs(s.costs, set->node_labels, set->edge_labels);
    const Exec ex({.threads = s.threads});
    const ged::AllPairs pairs = ged::all_pairs(ex, *set, costs, pairs_options(s, heard));
    for (std::size_t i = 0; i < set->size(); ++i) {
      low.set(i, i, 0.0);
      high.set(i, i, 0.0);
      for (std::size_t j = 0; j < i; ++j) {
        const std::size_t at = ged::AllPairs::at(i, j);
        low.set(i, j, pairs.lower[at]);
        low.set(j, i, pairs.lower[at]);
        high.set(i, j, pairs.upper[at]);
        high.set(j, i, pairs.upper[at]);
      }
    }
  });
}

int gradloom_ged_search(gradloom_handle graphs, int64_t query, const char* settings, const gradloom_hooks* hooks,
                        char** json) {
  return call([&] {
    given(json, "json");
    const GedSettings s(settings, GedSettings::Of::set);
    const Hooks heard(hooks);
    if (!s.options.threshold) throw_invalid("settings: 'threshold' is missing");
    const std::shared_ptr<const GraphSet> set = Used<GraphsObject>(graphs, "graphs")->finished();
    const std::size_t asked = graph_number(*set, query, "query");
    const ged::CostTable costs(s.costs, set->node_labels, set->edge_labels);
    const Exec ex({.threads = s.threads});
    nlohmann::json list = nlohmann::json::array();
    for (const ged::Found& f : ged::search(ex, *set, asked, costs, *s.options.threshold, pairs_options(s, heard)))
      list.push_back({{"graph", f.graph}, {"lower", f.lower}, {"upper", f.upper}, {"within", f.within}});
    *json = copy_text(list.dump());
  });
}
