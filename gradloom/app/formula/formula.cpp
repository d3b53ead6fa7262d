#include "gradloom/app/formula/formula.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/app/families/families.h"
#include "gradloom/app/formula/stored.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/app/run/open.h"
#include "gradloom/io/file.h"
#include "gradloom/io/json.h"
#include "gradloom/io/run_folder.h"

namespace gradloom::app {
namespace {

constexpr std::size_t kMaxFormulaBytes = 16 << 20;

Result<nlohmann::json> stored_formula(const FilePlace& file) {
  auto text = read_file(file, kMaxFormulaBytes);
  if (!text) return text.error();
  auto object = parse_json(*text, file.string());
  if (!object)
    return Error{object.error().code, object.error().message + "; --again searches for a formula and replaces it"};
  if (!object->is_object() || !object->value("text", nlohmann::json()).is_string())
    return Error{ErrorCode::invalid_input,
                 fmt::format("{} contains no formula; --again searches for one", file.string())};
  return object;
}

Result<FormulaData> data_of(Session& session, const FormulaRows& rows) {
  const AppFamily& family = find_family(session.options().family);
  if (!family.formula_data)
    return Error{ErrorCode::unsupported,
                 fmt::format("only spline networks have formulas; this is a model of family \"{}\"", family.name)};
  return family.formula_data(session, rows);
}

Result<PruneOptions> completed(PruneOptions o) {
  const int set = (o.threshold ? 1 : 0) + (o.inputs ? 1 : 0) + (o.worse ? 1 : 0);
  if (set > 1)
    return Error{ErrorCode::invalid_input, "threshold, inputs and worse exclude each other; set exactly one of them"};
  if (o.inputs && *o.inputs == 0) return Error{ErrorCode::invalid_input, "inputs is 0; it must be 1 or more"};
  if (set == 0) o.threshold = kPruneThreshold;
  return o;
}

}  // namespace

nlohmann::json to_json(const std::vector<FormulaReport>& reports) {
  nlohmann::json object = to_json(reports.front());
  if (reports.size() > 1)
    for (const FormulaReport& r : reports) object["targets"].push_back(to_json(r));
  return object;
}

Result<nlohmann::json> model_formula(const std::filesystem::path& model, const RunOptions& run,
                                     const FormulaSearchOptions& options,
                                     const std::function<void(double, double)>& progress) {
  return guarded([&]() -> Result<nlohmann::json> {
    std::error_code ignored;
    const bool other = !options.functions.empty() || !options.define.empty() || !options.forbid.empty() ||
                       !options.fix.empty() || !options.data.empty();
    if (is_formula_file(model)) {
      const bool edges = !options.functions.empty() || !options.define.empty() || !options.forbid.empty() ||
                         !options.fix.empty() || options.again;
      if (edges)
        return Error{ErrorCode::invalid_input,
                     fmt::format("{} is a formula, and nothing is searched: only --data has an effect, which fits its "
                                 "numbers to other rows",
                                 model.string())};
      if (!options.data.empty()) return fit_formulas_to(model, options.data);
      auto stored = read_formulas(model);
      if (!stored) return stored.error();
      return std::move(stored->object);
    }
    if (!options.again && !other && std::filesystem::exists(model / kFormulaFile, ignored)) {
      auto folder = RunFolder::open(model, FolderAccess::read);
      if (!folder) return folder.error();
      return stored_formula(folder->file(kFormulaFile));
    }
    std::vector<std::filesystem::path> files = {model};
    if (std::filesystem::is_directory(model, ignored)) files.push_back(model / "checkpoint" / "last.safetensors");
    if (!options.data.empty()) files.push_back(options.data);
    const auto own = options_of_rank(run, files);
    if (!own) return nlohmann::json();
    auto opened = open_model_or_run(model, *own, PartOfRun::checkpoint);
    if (!opened) return opened.error();
    opened->session->leave_ranks();  // the network itself is asked by each
    auto data = data_of(*opened->session, {.file = options.data, .of_run = true, .data_root = run.data_root});
    if (!data) return data.error();
    if (auto r = can_have_formula(*data); !r) return r.error();
    const Exec ex(run.exec);
    FormulaSearchOptions shared = options;
    shared.comm = own->comm;
    nlohmann::json object = to_json(find_formulas(ex, *data, shared, progress));
    object["model"] = model.string();
    object["warnings"] = opened->warnings;
    return object;
  });
}

Result<PruneReport> prune_model(const std::filesystem::path& model, const RunOptions& run,
                                const PruneOptions& options) {
  if (auto r = completed(options); !r) return r.error();
  if (auto r = refuse_overwriting_inputs(options.out, model, run.data_root, std::span(&options.data, 1)); !r)
    return r.error();
  if (options.out.extension() != ".safetensors")
    return Error{
        ErrorCode::invalid_input,
        fmt::format("'{}' does not end in .safetensors; what is written is a model file", options.out.string())};
  return guarded([&]() -> Result<PruneReport> {
    auto opened = open_model_or_run(model, run, PartOfRun::checkpoint);
    if (!opened) return opened.error();
    auto report = prune_session(*opened->session, run, options);
    if (report) report->warnings.insert(report->warnings.begin(), opened->warnings.begin(), opened->warnings.end());
    return report;
  });
}

Result<PruneReport> prune_session(Session& session, const RunOptions& run, const PruneOptions& given) {
  const auto options = completed(given);
  if (!options) return options.error();
  const AppFamily& family = find_family(session.options().family);
  if (!family.prune)
    return Error{ErrorCode::unsupported,
                 fmt::format("only spline networks can be pruned; this is a model of family \"{}\"", family.name)};
  auto report = family.prune(session, run, *options);
  constexpr double kMuch = 1.5;  // times the error before; --worse says itself how much it may be
  if (!report || options->worse) return report;
  const bool classes = report->loss.has_value();
  const double now = classes ? *report->loss : *report->rmse;
  const double before = classes ? *report->loss_before : *report->rmse_before;
  if (now > kMuch * before)
    report->warnings.push_back(
        fmt::format("the {} is {:.3g}, before {:.3g}: too much was removed; a smaller threshold, or a bound such as "
                    "worse = 0.1, removes less",
                    classes ? "loss" : "RMSE", now, before));
  return report;
}

Result<nlohmann::json> session_formula(const Exec& ex, Session& session, const RowDataset<double>* rows,
                                       const FormulaSearchOptions& options,
                                       const std::function<void(double, double)>& progress) {
  auto data = data_of(session, {.rows = rows});
  if (!data) return data.error();
  if (auto r = can_have_formula(*data); !r) return r.error();
  return to_json(find_formulas(ex, *data, options, progress));
}

Result<ScoresReport> session_scores(Session& session, const RowDataset<double>* rows) {
  auto data = data_of(session, {.rows = rows});
  if (!data) return data.error();
  const formula::Scores scores = formula::score(data->network, data->column_of);
  ScoresReport report;
  report.inputs = named_scores(data->features, scores.nodes[0]),
  report.columns = named_scores(data->columns, scores.columns);
  for (std::size_t l = 0; l < scores.edges.size(); ++l) {
    const std::size_t out = data->network.sums(l);
    for (std::size_t e = 0; e < scores.edges[l].size(); ++e)
      report.edges.push_back({l, e / out, e % out, scores.edges[l][e].value, scores.edges[l][e].error, true, {}});
    if (l == 0) continue;
    report.nodes.emplace_back(), report.node_errors.emplace_back();
    for (const formula::Score& s : scores.nodes[l])
      report.nodes.back().push_back(s.value), report.node_errors.back().push_back(s.error);
  }
  return report;
}

}  // namespace gradloom::app
