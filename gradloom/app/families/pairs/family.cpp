// Pairs of graphs in the application: graphs and their distances from files.
#include "gradloom/session/families/pairs/family.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

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
  Table table{"The pairs", "Pairs that are not trained on hold a graph that was held out.", {"", "number"}};
  table.rows.push_back({"graphs", family.graphs().size()});
  table.rows.push_back({"training pairs", family.train().size()});
  if (family.validation()) table.rows.push_back({"validation pairs", family.validation()->size()});
  if (family.test()) table.rows.push_back({"test pairs", family.test()->size()});
  if (family.unseen()) table.rows.push_back({"pairs of two test graphs", family.unseen()->size()});
  report.sections.push_back(std::move(table));
  add_figures("Pairs of two graphs that were never seen", result.found["unseen"], report);
  report.sections.push_back(parameter_table(session.model().parameters()));
}

AppFamily pairs_family() { return make_entry<PairFamily, load_pairs>("graph-pairs"); }

}  // namespace gradloom::app
