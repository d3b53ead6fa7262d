// Spline networks in the application: tables and formulas in, functions drawn.
#include "gradloom/session/families/kan/family.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gradloom/app/families/entry.h"
#include "gradloom/app/families/kan/export.h"
#include "gradloom/app/families/kan/formula.h"
#include "gradloom/app/families/kan/picture.h"
#include "gradloom/app/families/kan/prune.h"
#include "gradloom/app/families/kan/report.h"
#include "gradloom/app/families/kan/settle.h"
#include "gradloom/app/families/rows.h"
#include "gradloom/app/formula/data.h"
#include "gradloom/app/formula/formula.h"
#include "gradloom/app/settings.h"

namespace gradloom::app {

constexpr std::size_t kMostScored = 4096;  // edges of a network whose scores are shown

template <class T>
void describe(const TypedSession<KanFamily<T>>& session, const RunResult& result, Report& report) {
  const kan::Network<T> network = session.model();
  SplineNetwork picture = spline_picture(session.exec(), network, session.result_arrays(), session.family().train());
  const nlohmann::json found = result.found.value("formula", nlohmann::json());
  if (!found.is_null())
    add_formula_sections(found, std::move(picture), report);
  else if (picture.functions <= kMostScored)
    add_score_sections(kan_scores(session), std::move(picture), report);
  else
    report.sections.push_back(std::move(picture));
  add_predictions(session, found, report);

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
  return with_typed<KanFamily>(session, [&](const auto& typed) {
    const auto& family = typed.family();
    return load_new_rows(family.options(), data_root, family.schema().training, file, family.kLargestInput);
  });
}

}  // namespace

namespace {

std::vector<TextRow> kan_rows(const nlohmann::json& found) {
  std::vector<TextRow> rows;
  if (found.contains("pruned")) {
    const nlohmann::json& p = found.at("pruned");
    rows.emplace_back("pruned", fmt::format("{} of {} edges are left; inputs {}", p.at("edges").get<std::size_t>(),
                                            p.at("edges_before").get<std::size_t>(),
                                            fmt::join(p.at("inputs").get<std::vector<std::string>>(), ", ")));
  }
  if (!found.contains("formula")) return rows;
  const nlohmann::json& f = found.at("formula");
  const auto shown = [&](const char* key) {
    return f.at(key).is_number() ? fmt::format("{:.3g}", f.at(key).get<double>()) : std::string("undefined");
  };
  rows.emplace_back("formula",
                    fmt::format("{} = {}", f.at("target").get<std::string>(), f.at("text").get<std::string>()));
  rows.emplace_back("", fmt::format("{}; rmse {}, of the network {}", f.at("status").get<std::string>(),
                                    shown("rmse_formula"), shown("rmse_network")));
  return rows;
}

}  // namespace

namespace {

std::string_view kan_cure(const Session&, const Metrics&) {
  return "a smaller model.hidden or model.grid, or a larger optimizer.weight_decay, may do better on new data";
}

}  // namespace

template <class T>
Result<PredictedTable> predict_new(const TypedSession<KanFamily<T>>& session, const NewData& data) {
  return predict_rows(session, data);
}

AppFamily kan_family() {
  AppFamily entry = make_entry<KanFamily, load_splits>("kan");
  // A mistake in what follows training must not cost the training.
  entry.open = [](const Config& recipe, const std::filesystem::path& data_root,
                  const SessionOptions& settings) -> Result<std::unique_ptr<Session>> {
    static const auto open = make_entry<KanFamily, load_splits>("kan").open;
    auto session = open(recipe, data_root, settings);
    if (session) check_prune_options(**session), check_formula_options(**session);
    return session;
  };
  entry.headlines = {kAccuracy, kRmse};
  entry.read_rows = read_kan_rows;
  entry.settle = settle_kan;
  entry.overfit_cure = kan_cure;
  entry.load = load_row_model<KanFamily>;
  entry.predict = predict_with<KanFamily>;
  entry.formula_data = kan_formula_data;
  entry.prune = prune_kan;
  entry.export_network = export_kan;
  entry.finish = finish_kan_run;
  entry.finish_key = "formula";
  entry.finish_file = kFormulaFile;
  entry.summary_rows = kan_rows;
  return entry;
}

}  // namespace gradloom::app
