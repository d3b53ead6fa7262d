// Classifiers of logic gates in the application: tables in, the circuit and its inputs described.
#include "gradloom/session/families/gates/family.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gradloom/app/families/circuit_row.h"
#include "gradloom/app/families/entry.h"
#include "gradloom/app/settings.h"

namespace gradloom::app {

Result<RowSplits> load_gates(const GatesOptions& options, const std::filesystem::path& data_root) {
  return load_splits(options, data_root);
}

template <class T>
void describe(const TypedSession<GatesFamily<T>>& session, const nlohmann::json& summary, Report& report) {
  const RowDataset<T>& train = session.family().train();
  const nlohmann::json& c = summary["circuit"];
  Table table{"The circuit",
              "circuit.json holds it as it was learned; gradloom export minimises it and writes C, Verilog, a drawing.",
              {"", "gates"},
              {},
              std::nullopt};
  table.rows.push_back({"with weights", c["gates"].get<std::size_t>()});
  table.rows.push_back({"that do more than pass one input on", c["active_gates"].get<std::size_t>()});
  table.rows.push_back({"simplified", c["simplified_gates"].get<std::size_t>()});
  table.rows.push_back({"on the longest way, simplified", c["depth"].get<std::size_t>()});
  report.sections.push_back(std::move(table));
  Table bits{"Inputs", "The bits that the gates read.", {"number", "bit"}, {}, std::nullopt};
  for (std::size_t i = 0; i < train.features(); ++i) bits.rows.push_back({i, train.feature_names()[i]});
  report.sections.push_back(std::move(bits));
}

namespace {

std::vector<TextRow> gates_rows(const nlohmann::json& study) {
  std::vector<TextRow> rows;
  add_circuit_row(study, rows);
  return rows;
}

}  // namespace

AppFamily gates_family() {
  AppFamily entry = make_entry<GatesFamily, load_gates, make_gates_session, check_gates>("gates");
  static constexpr Headline kHeadlines[] = {kHardAccuracy};
  entry.headlines = kHeadlines;
  entry.study_rows = gates_rows;
  entry.load = load_model<GatesOptions, load_gates_session>;
  return entry;
}

}  // namespace gradloom::app
