// Spline networks in the application: tables and formulas in, functions drawn.
#include "gradloom/session/families/kan/family.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gradloom/app/families/entry.h"
#include "gradloom/app/families/kan/picture.h"
#include "gradloom/app/families/kan/settle.h"
#include "gradloom/app/families/rows.h"
#include "gradloom/app/settings.h"

namespace gradloom::app {

template <class T>
void describe(const TypedSession<KanFamily<T>>& session, const RunResult&, Report& report) {
  const kan::Network<T> network = session.model();
  report.sections.push_back(spline_picture(session.exec(), network, session.result_arrays(), session.family().train()));

  Table parameters{"Parameters", "", {"slice", "shape", "values"}};
  for (const Slice& slice : network.parameters()) {
    std::string shape;
    for (std::size_t d : slice.shape) shape += (shape.empty() ? "" : " × ") + std::to_string(d);
    parameters.rows.push_back({slice.name, shape, slice.logical_size()});
  }
  report.sections.push_back(std::move(parameters));
}

namespace {

Result<NewRows<double>> read_kan_rows(Session& session, const std::filesystem::path& data_root,
                                      const std::filesystem::path& file) {
  const auto read = [&](const auto& typed) {
    return load_new_rows(typed.family().options(), data_root, typed.family().schema().training, file);
  };
  if (const auto* single = dynamic_cast<const TypedSession<KanFamily<float>>*>(&session)) return read(*single);
  return read(dynamic_cast<const TypedSession<KanFamily<double>>&>(session));
}

}  // namespace

template <class T>
Result<PredictedTable> predict_new(const TypedSession<KanFamily<T>>& session, const NewData& data) {
  return predict_rows(session, data);
}

AppFamily kan_family() {
  AppFamily entry = make_entry<KanFamily, load_splits>("kan");
  entry.headlines = {kAccuracy, kRmse};
  entry.read_rows = read_kan_rows;
  entry.settle = settle_kan;
  entry.learns_rows = true;
  entry.load = load_row_model<KanFamily>;
  entry.predict = predict_with<KanFamily>;
  return entry;
}

}  // namespace gradloom::app
