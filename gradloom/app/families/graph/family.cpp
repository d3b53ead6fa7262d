// Graph networks in the application: graphs from files, and the picture of a small one.
#include "gradloom/session/families/graph/family.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gradloom/app/families/entry.h"
#include "gradloom/app/families/graph/karate.h"
#include "gradloom/app/families/graph/load.h"
#include "gradloom/app/run/advice.h"
#include "gradloom/train/predict.h"

namespace gradloom::app {

Result<GraphSet> load_graphs(const GraphFileOptions& data, const std::filesystem::path& data_root) {
  const auto found = [&](const std::optional<FileName>& name) {
    return name ? data_path(data.root, *name, data_root) : std::filesystem::path();
  };
  return gradloom::load_graphs({.path = found(data.path.value_or(FileName())),
                                .format = data.format,
                                .nodes = found(data.nodes),
                                .folder = found(data.graph_folder),
                                .class_column = data.class_column,
                                .drop = data.drop});
}

Result<std::shared_ptr<const GraphSet>> load_graph(const GraphOptions& options,
                                                   const std::filesystem::path& data_root) {
  const auto shared = [](GraphSet set) { return std::make_shared<const GraphSet>(std::move(set)); };
  if (options.data.path) {
    auto set = load_graphs(options.data, data_root);
    if (!set) return set.error();
    return shared(std::move(*set));
  }
  switch (options.data.graph) {
    case ShippedGraph::karate:
      return shared(karate_club());
    case ShippedGraph::none:
      break;
  }
  return Error{ErrorCode::invalid_input,
               "the recipe names no graphs: set data.path to a file or folder (--set data.path=FILE)"};
}

namespace {

// The graph of a node task with classes, when it is small enough to be looked at.
template <class T>
std::optional<GraphPicture> picture(const TypedSession<GraphFamily<T>>& session) {
  constexpr std::size_t kMostDrawn = 200;
  const GraphDataset<T>& train = session.family().train();
  const Graph& g = session.family().graphs().graphs.front();
  if (session.family().options().model.task != GraphTask::node || g.nodes() > kMostDrawn ||
      train.arrays().label.empty() || train.arrays().class_names.size() > kMostDrawnClasses)
    return {};
  GraphPicture drawn{"The graph", "Nodes have the colour of the predicted class.", {}, {}, {}};
  drawn.classes = train.arrays().class_names;
  const graph::GraphNetwork<T> model = session.model();
  Predictor<graph::GraphNetwork<T>, GraphDataset<T>> predictor(session.exec(), model, train);
  const View<const T, 2> y = predictor.run(session.result_arrays()).view();
  for (std::uint32_t v = 0; v < g.nodes(); ++v) {
    const T* row = y.row(train.row_of(v));
    const auto best = y.extent(1) == 1 ? std::ptrdiff_t{row[0] > T(0)}
                                       : std::max_element(row, row + y.extent(1)) - row;  // one output: a logit
    const std::uint32_t truth = g.node_classes()[v];
    drawn.nodes.push_back({fmt::format("node {}", session.family().graphs().node_id(0, v)),
                           static_cast<std::size_t>(best),
                           truth != kUnlabelled && truth != static_cast<std::uint32_t>(best),
                           train.all().weight[train.row_of(v)] != T(0)});
  }
  for (std::uint32_t e = 0; e < g.edges(); ++e) drawn.edges.emplace_back(g.edge_from()[e], g.edge_to()[e]);
  return drawn;
}

}  // namespace

template <class T>
void describe(const TypedSession<GraphFamily<T>>& session, const RunResult& result, Report& report) {
  const GraphSet& set = session.family().graphs();
  if (auto drawn = picture(session)) report.sections.push_back(std::move(*drawn));
  const GraphArrays<T>& a = session.family().train().arrays();
  Table table{"The graphs", "", {"", "number"}};
  table.rows.push_back({"graphs", set.size()});
  std::size_t nodes = 0, edges = 0;
  for (const Graph& g : set.graphs) nodes += g.nodes(), edges += g.edges();
  table.rows.push_back({"nodes", nodes});
  table.rows.push_back({"edges", edges});
  table.rows.push_back({"features of a node", a.features});
  if (a.edge_features > 0) table.rows.push_back({"features of an edge", a.edge_features});
  report.sections.push_back(std::move(table));
  if (result.curve) {
    Chart chart{"Accuracy", "After each epoch, on validation and test data.", "epoch", "accuracy", Scale::linear, {},
                {}};
    const auto add = [&](const char* name, Role role, const std::vector<double>& values) {
      Series series{name, role, {}};
      for (std::size_t e = 0; e < values.size(); ++e)
        series.points.push_back({static_cast<double>(result.curve->epoch[e]), values[e]});
      if (!series.points.empty()) chart.series.push_back(std::move(series));
    };
    add("validation", Role::validation, result.curve->validation);
    add("test", Role::test, result.curve->test);
    report.sections.push_back(std::move(chart));
  }
  report.sections.push_back(parameter_table(session.model().parameters()));
}

namespace {

// How outputs follow exact edit distances.
std::vector<TextRow> graph_rows(const nlohmann::json& found) {
  if (!found.contains("ged")) return {};
  const nlohmann::json& g = found["ged"];
  const auto number = [&](const char* key) {
    return g.contains(key) && g[key].is_number() ? fmt::format("{:.3g}", g[key].get<double>()) : std::string("-");
  };
  return {{"edit distances",
           fmt::format("mean {} over {} of {} pairs, rank correlation with outputs {}, same class {}, different {}",
                       number("mean"), g["exact"].dump(), g["pairs"].dump(), number("spearman"), number("same"),
                       number("different"))}};
}

std::string graph_progress(const nlohmann::json& metrics) {
  const bool known = metrics.contains("ged") && metrics["ged"].value("spearman", nlohmann::json()).is_number();
  return known ? fmt::format("ged rank {:+.2f}", metrics["ged"]["spearman"].get<double>()) : "";
}

}  // namespace

// The graphs of a new file, with the numbers of labels that the model knows.
Result<GraphSet> load_new_graphs(const GraphLayout& layout, const GraphFileOptions& data, const NewData& added) {
  GraphSource source{.path = added.file,
                     .nodes = added.nodes,
                     .folder = added.folder,
                     .class_column = data.class_column,
                     .drop = data.drop,
                     .known_features = layout.node_names};
  auto read = gradloom::load_graphs(source);
  // The form of the training file is right for what looks like nothing.
  source.format = data.format;
  if (!read && read.error().code == ErrorCode::invalid_input && data.format != GraphFormat::automatic)
    read = gradloom::load_graphs(source);
  if (!read) return read.error();
  const bool set_has_no_features = read->node_feature_names.empty();
  auto aligned = align_graphs(layout, std::move(*read));
  if (aligned) return aligned;
  const bool lacks_table = !layout.node_names.empty() && set_has_no_features && added.nodes.empty();
  return Error{aligned.error().code,
               fmt::format("{}: {}{}", added.file.string(), aligned.error().message,
                           lacks_table ? "; a table of edges needs data.nodes, the table of its nodes" : "")};
}

namespace {

// A row for each node, or for each graph, with its truth where that is known.
void name_nodes(const GraphSet& set, PredictedTable& table) {
  std::vector<std::string> id, graph, split;
  for (std::size_t g = 0; g < set.size(); ++g)
    for (std::uint32_t v = 0; v < set.graphs[g].nodes(); ++v) {
      id.push_back(set.node_id(g, v));
      graph.push_back(set.ids[g]);
      split.emplace_back();
    }
  std::vector<std::size_t> first{0};
  for (const Graph& g : set.graphs) first.push_back(first.back() + g.nodes());
  for (const NodeSplit& s : set.node_splits)
    for (const std::uint32_t v : s.nodes) split[first[s.graph] + v] = s.name;
  table.rows = id.size();
  table.add("id", std::move(id));
  table.add("graph", std::move(graph));
  if (!set.node_splits.empty()) table.add("split", std::move(split));
}

std::vector<std::string> truths(const GraphSet& set, const GraphLayout& layout) {
  std::vector<std::string> truth;
  for (const Graph& g : set.graphs) {
    if (layout.task == GraphTask::node)
      for (const std::uint32_t c : g.node_classes())
        truth.push_back(c == kUnlabelled ? "" : set.node_classes.names()[c]);
    else
      truth.push_back(layout.classes.empty() ? number_text(*g.graph_target(), Precision::float64)
                                             : set.graph_classes.names()[*g.graph_class()]);
  }
  return truth;
}

}  // namespace

template <class T>
PredictedTable predict_graph_set(const TypedSession<GraphFamily<T>>& session, const GraphSet& set) {
  const GraphFamily<T>& family = session.family();
  const GraphLayout& layout = family.layout();
  const auto [graphs, known] = family.new_graphs(set);
  PredictedTable table;
  if (layout.task == GraphTask::node) {
    name_nodes(set, table);
  } else {
    table.rows = set.size();
    table.add("id", set.ids);
    if (!set.splits.empty()) table.add("split", set.splits);
  }
  const std::string target = layout.classes.empty() ? "target" : "class";
  if (known) table.add(target, truths(set, layout));
  const PredictedRows y = session.predict_on(graphs);
  if (layout.classes.empty())
    add_numbers(table, y, {target});
  else
    add_classes(table, y, target, layout.classes);
  if (const auto outside = outside_of_ranges(layout, graphs.arrays()); !outside.empty()) add_outside(table, outside);
  if (known) table.metrics = session.measure_on(graphs);
  return table;
}
template PredictedTable predict_graph_set(const TypedSession<GraphFamily<float>>&, const GraphSet&);
template PredictedTable predict_graph_set(const TypedSession<GraphFamily<double>>&, const GraphSet&);

template <class T>
PredictedRows embed_graph_set(const TypedSession<GraphFamily<T>>& session, const GraphSet& set) {
  const auto [graphs, known] = session.family().new_graphs(set);
  const graph::GraphNetwork<T> model = session.family().model_for(session.position().stage, graphs);
  Predictor<graph::GraphNetwork<T>, GraphDataset<T>> predictor(session.exec(), model, graphs);
  predictor.run(session.result_arrays());
  PredictedRows rows;
  for (const graph::Tensor& part : model.embedding()) rows.width += part.width;
  rows.values.resize(graphs.size() * rows.width);
  std::size_t column = 0;
  for (const graph::Tensor& part : model.embedding()) {
    const View<const T, 2> value = model.value(predictor.tape(), part);
    for (std::size_t n = 0; n < graphs.size(); ++n)
      for (std::size_t c = 0; c < part.width; ++c)
        rows.values[n * rows.width + column + c] = static_cast<double>(value(graphs.row_of(n), c));
    column += part.width;
  }
  return rows;
}
template PredictedRows embed_graph_set(const TypedSession<GraphFamily<float>>&, const GraphSet&);
template PredictedRows embed_graph_set(const TypedSession<GraphFamily<double>>&, const GraphSet&);

template <class T>
Result<PredictedTable> predict_new(const TypedSession<GraphFamily<T>>& session, const NewData& data) {
  const GraphFamily<T>& family = session.family();
  auto read = load_new_graphs(family.layout(), family.options().data, data);
  if (!read) return read.error();
  return predict_graph_set(session, *read);
}

namespace {

// A few labelled nodes are known by heart whatever the width, which says nothing of it.
std::string_view graph_cure(const Session& session, const Metrics& metrics) {
  const auto& options = static_cast<const GraphOptions&>(session.options());
  const PartMetrics* held = held_out(metrics);
  if (options.model.task == GraphTask::node && held && held->samples > metrics.train.samples) return "";
  return "a smaller model.hidden, a larger model.dropout or a larger optimizer.weight_decay may do better on new data";
}

}  // namespace

AppFamily graph_family() {
  AppFamily entry = make_entry<GraphFamily, load_graph>("graph");
  entry.headlines = {kAccuracy, kRmse};
  entry.summary_rows = graph_rows;
  entry.progress = graph_progress;
  entry.overfit_cure = graph_cure;
  entry.load = load_model<GraphFamily>;
  entry.reads = NewDataKind::graphs;
  entry.predict = predict_with<GraphFamily>;
  return entry;
}

}  // namespace gradloom::app
