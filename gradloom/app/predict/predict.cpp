#include "gradloom/app/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/app/families/families.h"
#include "gradloom/app/formula/stored.h"
#include "gradloom/app/run/open.h"
#include "gradloom/io/file.h"

namespace gradloom::app {
namespace {

Result<void> check_files(const std::filesystem::path& model, const std::filesystem::path& data_root,
                         const PredictOptions& what) {
  std::error_code ignored;
  if (!std::filesystem::exists(what.file, ignored))
    return Error{ErrorCode::not_found, fmt::format("there is no file {}", what.file.string())};
  if (what.out.empty()) return {};
  if (auto r = check_prediction_file(what.out); !r) return r;
  return refuse_overwriting_inputs(what.out, model, data_root, what.files());
}

// What the predictions follow from.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& model, const PredictOptions& what) {
  std::error_code ignored;
  std::vector<std::filesystem::path> files = what.files();
  files.push_back(model);
  if (std::filesystem::is_directory(model, ignored)) files.push_back(model / "model.safetensors");
  return files;
}

}  // namespace

Result<void> check_new_data(const AppFamily& family, const NewData& data) {
  const bool pairs = family.reads == NewDataKind::graph_pairs, graphs = pairs || family.reads == NewDataKind::graphs;
  const char* refused = !data.distances.empty() && !pairs ? "distances are for models of family \"graph-pairs\""
                        : !data.nodes.empty() && !graphs  ? "a table of nodes is for models of graphs"
                        : !data.folder.empty() && !graphs ? "a folder of graphs is for models of graphs"
                                                          : nullptr;
  if (!refused) return {};
  return Error{ErrorCode::invalid_input,
               fmt::format("{}; this model reads {}", refused, name_of(kNewDataKinds, family.reads))};
}

Result<std::unique_ptr<Session>> open_model(const FilePlace& file, const SessionOptions& settings, ModelHead* out) {
  auto tensors = read_safetensors(file);
  if (!tensors) return tensors.error();
  return open_model(*tensors, file, settings, out);
}

Result<std::unique_ptr<Session>> open_model(const TensorFile& tensors, const std::filesystem::path& name,
                                            const SessionOptions& settings, ModelHead* out) {
  auto head = model_head(tensors, name);
  if (!head) return head.error();
  const auto all = families();
  const auto family = std::ranges::find(all, head->family, &AppFamily::name);
  if (family == all.end() || !family->load)
    return Error{ErrorCode::unsupported, fmt::format("{}: a model of family \"{}\" cannot be stored in a model file",
                                                     name.string(), head->family)};
  SessionOptions followed = settings;
  if (!settings.arithmetic && head->arithmetic && available(*head->arithmetic))
    followed.exec.variant.arithmetic = *head->arithmetic;
  auto session = family->load(*head, tensors, name, followed);
  if (session && out) *out = std::move(*head);
  return session;
}

Result<PredictReport> predict(const std::filesystem::path& model, const RunOptions& options,
                              const PredictOptions& what) {
  return guarded([&]() -> Result<PredictReport> {
    if (is_formula_file(model))
      return options.comm && options.comm->rank() > 0 ? PredictReport()
                                                      : predict_formulas(model, options.data_root, what);
    const auto own = options_of_rank(options, files_of(model, what));
    if (!own) return PredictReport();
    if (auto r = check_files(model, options.data_root, what); !r) return r.error();
    auto opened = open_model_or_run(model, *own, PartOfRun::model_file);
    if (!opened) return opened.error();
    Session& session = *opened->session;
    if (!session.shares_steps()) session.leave_ranks();  // each computes all
    const AppFamily& family = find_family(session.options().family);
    if (!family.predict)
      return Error{ErrorCode::unsupported,
                   fmt::format("models of family \"{}\" cannot be applied to new data", family.name)};
    if (auto r = check_new_data(family, what); !r) return r.error();
    auto table = family.predict(session, what);
    if (!table) return table.error();
    PredictReport report;
    report.model = model.string();
    report.family = family.name;
    report.epochs = opened->epochs;
    report.finished = opened->finished;
    report.rows = table->rows;
    report.outside = table->outside;
    report.data = table->metrics ? to_json(*table->metrics) : nlohmann::json();
    report.warnings = std::move(opened->warnings);
    if (table->metrics)
      for (std::string& warning : metric_warnings(*table->metrics, "new data", session.options().precision))
        report.warnings.push_back(std::move(warning));
    if (!report.finished)
      report.warnings.push_back(fmt::format("the training of this model was stopped after {}, before its end",
                                            counted(report.epochs, "epoch")));
    if (std::string warning = outside_warning(table->outside, table->rows); !warning.empty())
      report.warnings.push_back(std::move(warning));
    for (std::string& warning : table->warnings) report.warnings.push_back(std::move(warning));
    if (!table->shape.empty())
      if (std::string warning = not_finite_warning(table->values, table->shape.back()); !warning.empty())
        report.warnings.push_back(std::move(warning));
    if (what.out.empty() || (options.comm && options.comm->rank() > 0)) return report;
    if (auto r = write_predictions(what.out, *table); !r) return r.error();
    report.out = what.out.string();
    return report;
  });
}

}  // namespace gradloom::app
