// Pairs of graphs in the application: graphs and their distances from files.
#include "gradloom/session/families/pairs/family.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "gradloom/app/families/entry.h"
#include "gradloom/app/families/graph/load.h"

namespace gradloom::app {

Result<PairSource> load_pairs(const PairOptions& options, const std::filesystem::path& data_root) {
  auto set = load_graphs(options.data, data_root);
  if (!set) return set.error();
  auto distances = load_distances(data_path(options.data.root, options.data.distances, data_root));
  if (!distances) return distances.error();
  return PairSource{std::make_shared<const GraphSet>(std::move(*set)),
                    std::make_shared<const DistanceTable>(std::move(*distances))};
}

template <class T>
void describe(const TypedSession<PairFamily<T>>& session, const RunResult& result, Report& report) {
  const PairFamily<T>& family = session.family();
  Table table{"The pairs", "Validation and test pairs contain a graph that was held out.", {"", "number"}};
  table.rows.push_back({"graphs", family.graphs().size()});
  table.rows.push_back({"training pairs", family.train().size()});
  if (family.validation()) table.rows.push_back({"validation pairs", family.validation()->size()});
  if (family.test()) table.rows.push_back({"test pairs", family.test()->size()});
  if (family.unseen()) table.rows.push_back({"pairs of two test graphs", family.unseen()->size()});
  report.sections.push_back(std::move(table));
  add_figures("Pairs of two graphs held out of training", result.found["unseen"], report);
  report.sections.push_back(parameter_table(session.model().parameters()));
}

template <class T>
Result<PredictedTable> predict_new(const TypedSession<PairFamily<T>>& session, const NewData& data) {
  constexpr std::size_t kMostPairs = 1 << 20;  // all of them are one batch
  const PairFamily<T>& family = session.family();
  auto read = load_new_graphs(family.layout(), family.options().data, data);
  if (!read) return read.error();
  const GraphSet& set = *read;
  const std::size_t pairs = set.size() * (set.size() - 1) / 2;
  if (pairs == 0 || pairs > kMostPairs)
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: {} graphs make {} pairs; the number of pairs must be from 1 to {}",
                             data.file.string(), set.size(), pairs, kMostPairs)};
  std::optional<DistanceTable> distances;
  if (!data.distances.empty()) {
    auto known = load_distances(data.distances);
    if (!known) return known.error();
    if (auto r = check_same_graphs(*known, set); !r) return r.error();
    distances = std::move(*known);
  }
  const PairDataset<T> asked = family.new_pairs(set, distances ? &*distances : nullptr);
  const PredictedRows y = session.predict_on(asked);
  const std::vector<std::size_t> of_graph = outside_of_ranges(family.layout(), asked.graphs().arrays());
  PredictedTable table;
  table.rows = pairs;
  std::vector<std::string> id, other, similarity, distance, predicted;
  std::vector<std::size_t> outside;
  std::size_t zeros = 0;
  for (std::size_t p = 0; p < pairs; ++p) {
    const auto [a, b, target] = asked.pairs()[p];
    const double nodes = set.graphs[a].nodes() + set.graphs[b].nodes();
    id.push_back(set.ids[a]);
    other.push_back(set.ids[b]);
    if (distances) {
      similarity.push_back(number_text(target, Precision::float64));
      distance.push_back(number_text(distances->at(a, b), Precision::float64));
    }
    predicted.push_back(number_text(-0.5 * nodes * std::log(y.values[p]), y.precision));
    zeros += y.values[p] == 0.0;
    if (!of_graph.empty()) outside.push_back(of_graph[a] + of_graph[b]);
  }
  if (distances) table.warnings = similarity_warnings(set, *distances, family.options().precision);
  if (zeros > 0)
    table.warnings.push_back(
        fmt::format("{} of {} have the predicted similarity 0, so their distance is infinite: it is too large for {}",
                    zeros, counted(pairs, "pair"), name_of(kPrecisions, y.precision)));
  table.add("id", std::move(id));
  table.add("other", std::move(other));
  if (distances) table.add("similarity", std::move(similarity));
  add_numbers(table, y, {"similarity"});
  if (distances) table.add("distance", std::move(distance));
  table.add("distance_predicted", std::move(predicted));
  if (!outside.empty()) add_outside(table, outside);
  if (distances) table.metrics = session.measure_on(asked);
  return table;
}

AppFamily pairs_family() {
  AppFamily entry = make_entry<PairFamily, load_pairs>("graph-pairs");
  entry.load = load_model<PairFamily>;
  entry.reads = NewDataKind::graph_pairs;
  entry.predict = predict_with<PairFamily>;
  return entry;
}

}  // namespace gradloom::app
