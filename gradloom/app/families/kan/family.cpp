// Spline networks in the application: tables and formulas in, functions drawn.
#include "gradloom/session/families/kan/family.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gradloom/app/families/entry.h"
#include "gradloom/app/families/kan/export.h"
#include "gradloom/app/families/kan/formula.h"
#include "gradloom/app/families/kan/picture.h"
#include "gradloom/app/families/kan/settle.h"
#include "gradloom/app/families/rows.h"
#include "gradloom/app/formula/data.h"
#include "gradloom/app/settings.h"

namespace gradloom::app {

namespace {

// The formula that the run found, and what the inputs contribute.
void add_formula(const nlohmann::json& f, Report& report) {
  Table formula{"Formula", f.at("note").get<std::string>(), {"what", "value"}};
  formula.rows.push_back({f.at("target").get<std::string>(), f.at("text").get<std::string>()});
  formula.rows.push_back({std::string("status"), f.at("status").get<std::string>()});
  for (const char* key : {"rmse_formula", "rmse_network"})
    if (f.at(key).is_number()) formula.rows.push_back({std::string(key), f.at(key).get<double>()});
  formula.rows.push_back({std::string("LaTeX"), f.at("latex").get<std::string>()});
  report.sections.push_back(std::move(formula));
  Table inputs{"Inputs",
               "The share of the output's variance that comes through each, and its standard error.",
               {"input", "share", "error"}};
  inputs.bar_column = 1;
  for (const auto& i : f.at("inputs"))
    inputs.rows.push_back({i.at("name").get<std::string>(), i.at("score").get<double>(), i.at("error").get<double>()});
  report.sections.push_back(std::move(inputs));
}

}  // namespace

template <class T>
void describe(const TypedSession<KanFamily<T>>& session, const RunResult& result, Report& report) {
  if (result.found.contains("formula")) add_formula(result.found.at("formula"), report);
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
    const auto& family = typed.family();
    return load_new_rows(family.options(), data_root, family.schema().training, file, family.kLargestInput);
  };
  if (const auto* single = dynamic_cast<const TypedSession<KanFamily<float>>*>(&session)) return read(*single);
  return read(dynamic_cast<const TypedSession<KanFamily<double>>&>(session));
}

}  // namespace

namespace {

std::vector<TextRow> formula_rows(const nlohmann::json& found) {
  if (!found.contains("formula")) return {};
  const nlohmann::json& f = found.at("formula");
  return {{"formula", fmt::format("{} = {}", f.at("target").get<std::string>(), f.at("text").get<std::string>())},
          {"", fmt::format("{}; rmse {:.3g}, of the network {:.3g}", f.at("status").get<std::string>(),
                           f.at("rmse_formula").get<double>(), f.at("rmse_network").get<double>())}};
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
  entry.formula_data = kan_formula_data;
  entry.prune = prune_kan;
  entry.export_network = export_kan;
  entry.finish = finish_kan_run;
  entry.finish_key = "formula";
  entry.summary_rows = formula_rows;
  return entry;
}

}  // namespace gradloom::app
