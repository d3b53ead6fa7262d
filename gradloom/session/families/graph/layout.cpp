#include "gradloom/session/families/graph/layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradloom {
namespace {

using nlohmann::json;

constexpr std::size_t kMostColumns = std::size_t{1} << 32;

// Calls see(column, value) for every feature of a node that is stored.
template <class T, class See>
void each_node_value(const GraphArrays<T>& a, std::size_t node, See see) {
  if (a.sparse()) {
    for (std::uint32_t e = a.feature_ptr[node]; e < a.feature_ptr[node + 1]; ++e)
      see(a.feature_column[e], static_cast<double>(a.feature_value[e]));
    return;
  }
  for (std::size_t c = 0; c < a.features; ++c) see(c, static_cast<double>(a.x[node * a.stride + c]));
}

template <class T, class See>
void each_edge_value(const GraphArrays<T>& a, std::size_t arc, See see) {
  for (std::size_t c = 0; c < a.edge_features; ++c) see(c, static_cast<double>(a.edge_x[arc * a.edge_stride + c]));
}

// The least and largest of what was seen; columns that rows leave out have zeros there.
class RangeFinder {
 public:
  explicit RangeFinder(std::size_t columns) : ranges_(columns), seen_(columns, 0) {}
  void see(std::size_t column, double v) {
    FeatureRange& r = ranges_[column];
    r = seen_[column]++ == 0 ? FeatureRange{v, v} : FeatureRange{std::min(r.low, v), std::max(r.high, v)};
  }
  std::vector<FeatureRange> finish(std::size_t rows) {
    for (std::size_t c = 0; c < ranges_.size(); ++c)
      if (seen_[c] < rows) see(c, 0.0);
    return std::move(ranges_);
  }

 private:
  std::vector<FeatureRange> ranges_;
  std::vector<std::size_t> seen_;
};

template <class T>
std::vector<FeatureRange> ranges_of_graphs(const GraphArrays<T>& a) {
  RangeFinder nodes(a.features), edges(a.edge_features);
  for (std::size_t v = 0; v < a.nodes; ++v)
    each_node_value(a, v, [&](std::size_t c, double value) { nodes.see(c, value); });
  for (std::size_t e = 0; e < a.source.size(); ++e)
    each_edge_value(a, e, [&](std::size_t c, double value) { edges.see(c, value); });
  std::vector<FeatureRange> ranges = nodes.finish(a.nodes);
  for (const FeatureRange& r : edges.finish(a.source.size())) ranges.push_back(r);
  return ranges;
}

// Columns of node features that the file has; labels, degrees and others make the rest.
std::size_t given_features(const GraphLayout& l) {
  return l.nodes == NodeFeatures::given ? l.node_features
         : l.nodes == NodeFeatures::all ? l.node_features - l.node_labels.size()
                                        : 0;
}

std::vector<std::string> feature_names(const GraphLayout& l) {
  std::vector<std::string> names;
  const std::size_t given = given_features(l);
  for (std::size_t c = 0; c < l.node_features; ++c) switch (c < given ? NodeFeatures::given : l.nodes) {
      case NodeFeatures::all:
      case NodeFeatures::labels:
        names.push_back("label=" + l.node_labels[c - given]);
        break;
      case NodeFeatures::degrees:
        names.push_back(fmt::format("neighbours{}={}", c + 1 < l.node_features ? "" : ">", c));
        break;
      case NodeFeatures::identity:
        names.push_back(fmt::format("node={}", c));
        break;
      case NodeFeatures::constant:
        names.emplace_back("one");
        break;
      case NodeFeatures::automatic:
      case NodeFeatures::given:
        names.push_back(l.node_names.empty() ? fmt::format("x{}", c + 1) : l.node_names[c]);
        break;
    }
  for (std::size_t c = 0; c < l.edge_features; ++c)
    names.push_back("edge " + (c >= l.given_edge_features ? "label=" + l.edge_labels[c - l.given_edge_features]
                               : l.edge_names.empty()     ? fmt::format("x{}", c + 1)
                                                          : l.edge_names[c]));
  return names;
}

// The direction of all edges, where they have one.
std::optional<Direction> direction_of(const GraphSet& set) {
  std::optional<Direction> found;
  for (const Graph& g : set.graphs) {
    if (g.edges() == 0) continue;
    if (found && *found != g.direction()) return std::nullopt;
    found = g.direction();
  }
  return found;
}

const char* name_of_direction(Direction d) { return d == Direction::directed ? "directed" : "undirected"; }

// Names that are not known are taken as they come.
Result<void> check_feature_names(const std::vector<std::string>& known, const std::vector<std::string>& found,
                                 const char* of) {
  if (known.empty() || known.size() != found.size() || known == found) return {};
  const auto [mine, other] = std::ranges::mismatch(found, known);
  return Error{
      ErrorCode::invalid_input,
      fmt::format("feature {} of {} is '{}', but the model was trained with '{}' there; features must have the "
                  "names and the order of the training data",
                  mine - found.begin() + 1, of, *mine, *other)};
}

// The first graph with a number that the layout's table does not have.
template <class Has>
Error unknown_name(const GraphSet& set, const LabelTable& table, std::size_t known, const char* what, Has has) {
  for (std::size_t g = 0; g < set.size(); ++g)
    for (auto number = static_cast<std::uint32_t>(known); number < table.size(); ++number)
      if (has(set.graphs[g], number))
        return {ErrorCode::invalid_input, fmt::format("graph '{}' has the {} '{}', which the model was not trained on",
                                                      set.ids[g], what, table.names()[number])};
  return {ErrorCode::invalid_input,
          fmt::format("the data have the {} '{}', which the model was not trained on", what, table.names()[known])};
}

bool contains_number(std::span<const std::uint32_t> numbers, std::uint32_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

Result<void> check_names(const GraphLayout& l, const GraphSet& set) {
  if (has_labels(l.nodes) && set.node_labels.size() > l.node_labels.size())
    return unknown_name(set, set.node_labels, l.node_labels.size(), "node label",
                        [](const Graph& g, std::uint32_t n) { return contains_number(g.node_labels(), n); });
  if (l.edge_features > l.given_edge_features && set.edge_labels.size() > l.edge_labels.size())
    return unknown_name(set, set.edge_labels, l.edge_labels.size(), "edge label",
                        [](const Graph& g, std::uint32_t n) { return contains_number(g.edge_labels(), n); });
  if (l.task == GraphTask::node && set.node_classes.size() > l.classes.size())
    return unknown_name(set, set.node_classes, l.classes.size(), "node class",
                        [](const Graph& g, std::uint32_t n) { return contains_number(g.node_classes(), n); });
  if (l.task == GraphTask::graph && set.graph_classes.size() > l.classes.size() && !l.classes.empty())
    return unknown_name(set, set.graph_classes, l.classes.size(), "class",
                        [](const Graph& g, std::uint32_t n) { return g.graph_class() == n; });
  return {};
}

// What is wrong with one graph; empty: nothing.
std::string misfit_of(const GraphLayout& l, const Graph& g) {
  if (g.nodes() == 0) return "has no nodes";
  if (has_labels(l.nodes) && g.node_labels().empty()) return "has nodes without labels";
  if (l.nodes == NodeFeatures::identity && g.nodes() > l.node_features)
    return fmt::format("has {} nodes, but the model was trained with {}", g.nodes(), l.node_features);
  if (has_given(l.nodes)) {
    const bool sparse = !g.sparse_features().empty();
    const std::size_t width = sparse ? g.sparse_features().columns : g.node_feature_width();
    if (width != given_features(l))
      return fmt::format("has {} node features; the model was trained with {}", width, given_features(l));
    if ((l.task == GraphTask::node || l.nodes == NodeFeatures::all) && sparse != l.sparse)
      return fmt::format("has {} node features; the model was trained with {} ones", sparse ? "sparse" : "dense",
                         l.sparse ? "sparse" : "dense");
  }
  if (g.edges() == 0) return "";
  if (l.direction && g.direction() != *l.direction)
    return fmt::format("has {} edges; the model was trained with {} ones", name_of_direction(g.direction()),
                       name_of_direction(*l.direction));
  if (g.edge_weights().empty() == l.edge_weights)
    return l.edge_weights ? "has edges without weights; the model was trained with weights"
                          : "has edges with weights; the model was trained without them";
  if (g.edge_feature_width() != l.given_edge_features)
    return fmt::format("has {} edge features; the model was trained with {}", g.edge_feature_width(),
                       l.given_edge_features);
  if (l.edge_features > l.given_edge_features && g.edge_labels().empty()) return "has edges without labels";
  return "";
}

double read_centre(EntryReader& scale, bool classes) {
  if (!scale.has("centre")) return 0.0;
  EntryReader centre(scale.at("centre"), "normalisation.centre");
  const std::vector<double> numbers = centre.numbers("targets");
  centre.done();
  if (numbers.size() != 1 || classes)
    centre.fail(fmt::format("there are {} centres for {}", numbers.size(), classes ? "classes" : "one target"));
  return numbers[0];
}

}  // namespace

template <class T>
GraphLayout graph_layout(const GraphSet& set, const GraphArrays<T>& arrays, const GraphFeatureOptions& options) {
  GraphLayout l;
  l.task = arrays.task;
  l.nodes = resolve_features(options.nodes, set);
  l.node_features = arrays.features, l.edge_features = arrays.edge_features;
  l.sparse = arrays.sparse();
  l.edge_weights = !arrays.edge_weight.empty();
  l.mean = options.mean, l.std = options.std;
  if (has_labels(l.nodes)) l.node_labels = set.node_labels.names();
  l.given_edge_features = arrays.edge_features;
  const auto has_labels = [](const Graph& g) { return !g.edge_labels().empty(); };
  if (options.edge_labels && arrays.edge_features > 0 && std::ranges::any_of(set.graphs, has_labels)) {
    l.edge_labels = set.edge_labels.names();
    l.given_edge_features -= l.edge_labels.size();
  }
  if (has_given(l.nodes) && set.node_feature_names.size() == given_features(l)) l.node_names = set.node_feature_names;
  if (set.edge_feature_names.size() == l.given_edge_features) l.edge_names = set.edge_feature_names;
  l.direction = direction_of(set);
  if (arrays.target.empty()) l.classes = arrays.class_names;
  l.target_centre = arrays.target_centre;
  l.ranges = ranges_of_graphs(arrays);
  return l;
}

ModelDescription describe_graphs(const GraphLayout& l) {
  ModelDescription d;
  d.features = feature_names(l);
  d.targets = l.classes.empty() ? std::vector<std::string>{"target"} : std::vector<std::string>();
  d.classes = l.classes;
  d.input = {{"nodes", name_of(kNodeFeatures, l.nodes)},
             {"node_features", l.node_features},
             {"edge_features", l.edge_features},
             {"given_edge_features", l.given_edge_features},
             {"sparse", l.sparse},
             {"edge_weights", l.edge_weights},
             {"node_labels", l.node_labels},
             {"edge_labels", l.edge_labels}};
  if (!l.node_names.empty()) d.input["named_nodes"] = true;
  if (!l.edge_names.empty()) d.input["named_edges"] = true;
  if (l.direction) d.input["direction"] = name_of_direction(*l.direction);
  d.normalisation = json::object();
  if (!l.mean.empty()) d.normalisation = {{"mean", l.mean}, {"deviation", l.std}};
  if (l.target_centre != 0.0) d.normalisation["centre"] = {{"targets", {l.target_centre}}};
  d.ranges = l.ranges;
  return d;
}

GraphLayout restore_layout(const ModelDescription& d, GraphTask task) {
  EntryReader reader(d.input, "input");
  GraphLayout l;
  l.task = task;
  l.nodes = value_of<NodeFeatures>(kNodeFeatures, reader.text("nodes"), "input.nodes").or_throw();
  l.node_features = reader.count("node_features", kMostColumns);
  l.edge_features = reader.count("edge_features", kMostColumns);
  l.given_edge_features = reader.count("given_edge_features", l.edge_features);
  l.sparse = reader.flag("sparse");
  l.edge_weights = reader.flag("edge_weights");
  l.node_labels = reader.names("node_labels");
  l.edge_labels = reader.names("edge_labels");
  const bool named_nodes = reader.has("named_nodes") && reader.flag("named_nodes");
  const bool named_edges = reader.has("named_edges") && reader.flag("named_edges");
  if (reader.has("direction")) {
    const std::string direction = reader.text("direction");
    l.direction = direction == name_of_direction(Direction::directed) ? Direction::directed : Direction::undirected;
    if (direction != name_of_direction(*l.direction))
      reader.fail(fmt::format("'direction' is '{}', not directed or undirected", direction));
  }
  reader.done();
  if (l.nodes == NodeFeatures::all && l.node_labels.size() >= l.node_features)
    reader.fail(fmt::format("{} labels are all of {} features", l.node_labels.size(), l.node_features));
  const std::size_t given = given_features(l);
  l.classes = d.classes;
  l.ranges = d.ranges;
  EntryReader scale(d.normalisation, "normalisation");
  const bool scaled = d.normalisation.contains("mean");
  if (scaled) l.mean = scale.numbers("mean"), l.std = scale.numbers("deviation");
  l.target_centre = read_centre(scale, !l.classes.empty());
  scale.done();
  if (scaled) {
    const bool fits = l.mean.size() == given && l.std.size() == given && given > 0 && !l.sparse &&
                      std::ranges::all_of(l.std, [](double s) { return s > 0; });
    if (!fits) scale.fail(fmt::format("there are {} means for {} features", l.mean.size(), given));
  }
  if (l.nodes == NodeFeatures::automatic) reader.fail("'nodes' does not say what features are");
  if (l.node_features == 0 || l.node_features + l.edge_features != d.features.size())
    reader.fail(fmt::format("there are {} node features and {} edge features, but {} names", l.node_features,
                            l.edge_features, d.features.size()));
  if (named_nodes) l.node_names.assign(d.features.begin(), d.features.begin() + static_cast<std::ptrdiff_t>(given));
  for (std::size_t c = 0; c < l.given_edge_features && named_edges; ++c) {
    const std::string& name = d.features[l.node_features + c];
    if (!name.starts_with("edge ")) reader.fail(fmt::format("the feature '{}' is not an edge feature", name));
    l.edge_names.push_back(name.substr(5));
  }
  if (l.nodes == NodeFeatures::labels && l.node_labels.size() != l.node_features)
    reader.fail(fmt::format("{} labels make {} features", l.node_labels.size(), l.node_features));
  if (l.nodes == NodeFeatures::constant && l.node_features != 1)
    reader.fail(fmt::format("a constant is one feature, not {}", l.node_features));
  if (l.edge_labels.size() != l.edge_features - l.given_edge_features)
    reader.fail(
        fmt::format("{} edge labels for {} features", l.edge_labels.size(), l.edge_features - l.given_edge_features));
  if (l.sparse && (l.nodes != NodeFeatures::given || task != GraphTask::node))
    reader.fail("only node features of the data can be sparse");
  if (d.targets.empty() == d.classes.empty() || d.classes.size() == 1 || d.targets.size() > 1)
    reader.fail(fmt::format("a model of graphs has one target or several classes, not {} and {}", d.targets.size(),
                            d.classes.size()));
  return l;
}

Result<GraphSet> align_graphs(const GraphLayout& l, GraphSet graphs) {
  if (graphs.size() == 0) return Error{ErrorCode::invalid_input, "there are no graphs in the data"};
  GraphSet set;
  if (has_labels(l.nodes)) set.node_labels = LabelTable(l.node_labels);
  if (l.edge_features > l.given_edge_features) set.edge_labels = LabelTable(l.edge_labels);
  (l.task == GraphTask::node ? set.node_classes : set.graph_classes) = LabelTable(l.classes);
  set.append(std::move(graphs));
  if (auto r = check_feature_names(l.node_names, set.node_feature_names, "nodes"); !r) return r.error();
  if (auto r = check_feature_names(l.edge_names, set.edge_feature_names, "edges"); !r) return r.error();
  if (auto r = check_names(l, set); !r) return r.error();
  for (std::size_t g = 0; g < set.size(); ++g)
    if (const std::string wrong = misfit_of(l, set.graphs[g]); !wrong.empty())
      return Error{ErrorCode::invalid_input, fmt::format("graph '{}' {}", set.ids[g], wrong)};
  return set;
}

GraphFeatureOptions layout_options(const GraphLayout& l, GraphFeatureOptions options, bool targets_known) {
  options.nodes = l.nodes;
  options.targets_known = targets_known;
  options.edge_labels = l.edge_features > l.given_edge_features;
  options.mean = l.mean, options.std = l.std;
  options.target_centre = l.target_centre;
  if (l.nodes == NodeFeatures::identity) options.identities = l.node_features;
  if (l.nodes == NodeFeatures::degrees) options.max_degree = l.node_features - 1;
  return options;
}

template <class T>
std::vector<std::size_t> outside_of_ranges(const GraphLayout& l, const GraphArrays<T>& a) {
  if (l.ranges.empty()) return {};
  std::vector<std::size_t> found;
  std::vector<std::uint8_t> outside(l.ranges.size());
  const auto see = [&](std::size_t c, double v) { outside[c] |= v < l.ranges[c].low || v > l.ranges[c].high; };
  const auto take = [&] {
    found.push_back(static_cast<std::size_t>(std::count(outside.begin(), outside.end(), 1)));
    std::fill(outside.begin(), outside.end(), std::uint8_t{0});
  };
  for (std::size_t g = 0; g < a.graphs; ++g) {
    for (std::size_t v = a.graph_ptr[g]; v < a.graph_ptr[g + 1]; ++v) {
      each_node_value(a, v, see);
      for (std::size_t e = a.ptr[v]; e < a.ptr[v + 1]; ++e)
        each_edge_value(a, e, [&](std::size_t c, double value) { see(a.features + c, value); });
      if (a.task == GraphTask::node) take();
    }
    if (a.task == GraphTask::graph) take();
  }
  if (a.row_of.empty()) return found;
  std::vector<std::size_t> of_nodes;
  for (const std::uint32_t row : a.row_of) of_nodes.push_back(found[row]);
  return of_nodes;
}

#define GRADLOOM_INSTANTIATE(T)                                                                          \
  template GraphLayout graph_layout(const GraphSet&, const GraphArrays<T>&, const GraphFeatureOptions&); \
  template std::vector<std::size_t> outside_of_ranges(const GraphLayout&, const GraphArrays<T>&);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom
