// Graph networks in the application: graphs from files, and the picture of a small one.
#include "gradloom/session/families/graph/family.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gradloom/app/families/entry.h"
#include "gradloom/app/families/graph/karate.h"
#include "gradloom/app/families/graph/load.h"
#include "gradloom/train/predict.h"

namespace gradloom::app {

Result<GraphSet> load_graphs(const GraphFileOptions& data, const std::filesystem::path& data_root) {
  return gradloom::load_graphs(
      {.path = data_path(data.root, data.path.value_or(FileName()), data_root), .format = data.format});
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
  GraphPicture drawn{"The graph", "Nodes in the colour of the class that was predicted.", {}, {}, {}};
  drawn.classes = train.arrays().class_names;
  const graph::GraphNetwork<T> model = session.model();
  Predictor<graph::GraphNetwork<T>, GraphDataset<T>> predictor(session.exec(), model, train);
  const View<const T, 2> y = predictor.run(session.result_arrays()).view();
  for (std::uint32_t v = 0; v < g.nodes(); ++v) {
    const T* row = y.row(v);
    const auto best = y.extent(1) == 1 ? std::ptrdiff_t{row[0] > T(0)}
                                       : std::max_element(row, row + y.extent(1)) - row;  // one output: a logit
    const std::uint32_t truth = g.node_classes()[v];
    drawn.nodes.push_back({fmt::format("node {}", v), static_cast<std::size_t>(best),
                           truth != kUnlabelled && truth != static_cast<std::uint32_t>(best),
                           train.all().weight[v] != T(0)});
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
    Chart chart{"Accuracy", "After each epoch, on data that is not trained on.", "epoch", "accuracy", Scale::linear, {},
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

AppFamily graph_family() {
  AppFamily entry = make_entry<GraphFamily, load_graph>("graph");
  entry.headlines = {kAccuracy, kRmse};
  entry.summary_rows = graph_rows;
  entry.progress = graph_progress;
  return entry;
}

}  // namespace gradloom::app
