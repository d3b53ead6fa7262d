// Classifiers of logic gates in the application: tables in, the circuit and its inputs described.
#include "gradloom/session/families/gates/family.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gradloom/app/families/circuit_text.h"
#include "gradloom/app/families/entry.h"
#include "gradloom/app/families/gates/settle.h"
#include "gradloom/app/families/rows.h"
#include "gradloom/app/settings.h"

namespace gradloom::app {

template <class T>
void describe(const TypedSession<GatesFamily<T>>& session, const RunResult& result, Report& report) {
  const RowDataset<T>& train = session.family().train();
  report.sections.push_back(circuit_table(result.found, {{"gates", "with weights"},
                                                         {"active_gates", "that do more than pass one input on"},
                                                         {"simplified_gates", "simplified"},
                                                         {"depth", "on the longest path, simplified"}}));
  Table bits{"Inputs", "The bits that the gates read.", {"number", "bit"}};
  for (std::size_t i = 0; i < train.features(); ++i) bits.rows.push_back({i, train.feature_names()[i]});
  report.sections.push_back(std::move(bits));
}

template <class T>
Result<PredictedTable> predict_new(const TypedSession<GatesFamily<T>>& session, const NewData& data) {
  return predict_rows(session, data);
}

namespace {

std::string_view gates_cure(const Session&, const Metrics&) {
  return "more training rows, a smaller model.gates or a smaller data.thresholds may do better on new data";
}

}  // namespace

AppFamily gates_family() {
  AppFamily entry = make_entry<GatesFamily, load_splits>("gates");
  entry.headlines = {kHardAccuracy};
  entry.study_rows = circuit_rows;
  entry.settle = settle_gates;
  entry.overfit_cure = gates_cure;
  entry.load = load_row_model<GatesFamily>;
  entry.predict = predict_with<GatesFamily>;
  return entry;
}

}  // namespace gradloom::app
