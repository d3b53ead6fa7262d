#include "gradloom/app/formula/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/app/families/families.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/app/run/open.h"
#include "gradloom/app/text.h"
#include "gradloom/comm/comm.h"
#include "gradloom/data/fingerprint.h"
#include "gradloom/formula/noisy.h"
#include "gradloom/formula/print.h"
#include "gradloom/formula/refine.h"
#include "gradloom/formula/simplify.h"
#include "gradloom/io/file.h"
#include "gradloom/io/json.h"
#include "gradloom/io/run_folder.h"

namespace gradloom::app {
namespace {

using formula::Notation;

constexpr std::size_t kMaxFormulaBytes = 16 << 20;

double rms(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return a.empty() ? 0 : std::sqrt(sum / static_cast<double>(a.size()));
}

void write_texts(const formula::Expr& e, const std::vector<std::string>& names, FormulaReport& r) {
  r.text = print(e, names, Notation::text), r.latex = print(e, names, Notation::latex);
  r.sympy = print(e, names, Notation::sympy), r.python = print(e, names, Notation::python);
  r.c = print(e, names, Notation::c);
  r.variables = formula::printed_names(names, Notation::python);
  r.complexity = complexity(e);
}

// Digits that do not matter: as few as leave the error where it is, to a thousandth of it, and what is allowed.
formula::Expr rounded(const formula::Expr& e, const formula::Columns& x, const std::vector<double>& y,
                      const formula::AllowedFormula& accepted) {
  const double allowed = 1.001 * formula::rms_error(e, x, y);
  for (int digits = 3; digits < 15; ++digits) {
    std::vector<formula::Constant> c;
    for (const double v : formula::constants_of(e)) c.push_back(formula::Constant::approximate(with_digits(v, digits)));
    const formula::Expr shorter = formula::with_constants(e, c);
    if (formula::rms_error(shorter, x, y) <= allowed && accepted(shorter)) return shorter;
  }
  return e;
}

std::vector<FormulaScore> named(const std::vector<std::string>& names, const std::vector<formula::Score>& scores) {
  std::vector<FormulaScore> list;
  for (std::size_t i = 0; i < names.size(); ++i) list.push_back({names[i], scores[i].value, scores[i].error});
  return list;
}

FormulaEdge edge_report(const formula::ExplainedEdge& e) {
  FormulaEdge r{e.layer, e.from, e.to, e.score.value, e.score.error, e.kept, {}};
  const std::vector<std::string> name{"x"};
  for (const formula::EdgeCandidate& c : e.candidates)
    r.candidates.push_back({c.function, print(c.text, name, Notation::text), c.r2, c.rmse, c.complexity});
  return r;
}

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

// Ranks must be about to search the same.
formula::Deal deal_of(Comm* comm, const formula::Table& table, double effort) {
  if (!comm) return {};
  Fingerprint f;
  for (const auto& column : table.x) f.take(std::span<const double>(column));
  f.take(std::span<const double>(table.y));
  f.take(std::span<const double>(&effort, 1));
  require_same(*comm, {{"other rows to search on", f.value()}});
  const auto exchange = [comm](std::span<formula::Outcome> batch) {
    std::vector<formula::Outcome> all(batch.size() * comm->size());
    comm->allgather(std::as_bytes(batch), std::as_writable_bytes(std::span(all)));
    for (std::size_t i = 0; i < batch.size(); ++i) batch[i] = all[i % comm->size() * batch.size() + i];
  };
  return {comm->rank(), comm->size(), exchange};
}

bool is_stopped(const formula::SearchOptions& options) {
  return options.stop && options.deal.ranks == 1 && *options.stop;
}

// The formula behind the rows, exact or down to their noise; null: none. Tells status, steps, work and note.
formula::Expr search(const Exec& ex, const formula::Table& table, const formula::SearchOptions& options,
                     FormulaReport& r) {
  const formula::SearchResult found = formula::search_formula(ex, table, options);
  r.steps = found.steps, r.work = found.work, r.exhausted = found.exhausted;
  if (found.formula) {
    r.status = "exact";
    return *found.formula;
  }
  const formula::NoisyResult noisy = formula::search_noisy(ex, table, options);
  r.work += noisy.work;
  if (!noisy.formula || is_stopped(options)) return nullptr;
  r.steps = noisy.steps;
  const formula::Expr e = rounded(*noisy.formula, table.x, table.y, options.allowed);
  if (e->op == formula::Op::number) {
    // Noise alone, or a function that nothing smooth comes close to: a mean does not tell which.
    r.status = "approximate", r.note = "nothing was found that explains the target better than its mean";
    return e;
  }
  r.status = "consistent";
  r.note = fmt::format("the data are consistent with it; their noise is about {:.2g}", noisy.noise);
  return e;
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

std::vector<FormulaReport> find_formulas(const Exec& ex, const FormulaData& data, const FormulaSearchOptions& options,
                                         const std::function<void(double, double)>& progress) {
  std::vector<FormulaReport> reports;
  const formula::Functions functions(options);
  const formula::AllowedFormula allowed = [&](const formula::Expr& e) { return functions.allows(e); };
  const formula::Scores scores = formula::score(data.network, data.column_of);
  for (std::size_t t = 0; t < data.targets.size(); ++t) {
    FormulaReport r;
    r.target = data.targets[t];
    r.inputs = named(data.features, scores.nodes[0]), r.columns = named(data.columns, scores.columns);
    const formula::Table table{data.features, data.x, data.y[t]};
    formula::EdgeFormulaOptions edge_options;
    edge_options.threshold = options.threshold, edge_options.output = t;
    edge_options.functions = functions;
    std::vector<formula::ExplainedEdge> edges = formula::explain_edges(ex, data.network, scores, edge_options);
    formula::Expr chosen;
    const bool enough = table.rows() >= formula::kLeastRows;
    bool stopped = false;
    if (data.data && enough && !functions.by_edge()) {
      const formula::SearchOptions how{.effort = options.effort,
                                       .progress = progress,
                                       .allowed = allowed,
                                       .deal = deal_of(options.comm, table, options.effort),
                                       .stop = options.stop};
      chosen = search(ex, table, how, r);
      stopped = is_stopped(how);
    }
    if (!chosen) {
      chosen = rounded(formula::edge_formula(data.network, edges, table, t, functions), table.x, table.y, allowed);
      r.status = "approximate";
      r.note =
          functions.by_edge() ? "made edge by edge, because functions of edges were set"
          : !data.data        ? "there are no data: the formula approximates the network"
          : !enough
              ? fmt::format("no search: it needs at least {} rows, and there are {}", formula::kLeastRows, table.rows())
          : stopped     ? "the search was stopped"
          : r.exhausted ? fmt::format("no exact formula within an effort of {}; --effort allows more", options.effort)
                        : "no exact formula was found";
    }
    for (const formula::ExplainedEdge& e : edges) r.edges.push_back(edge_report(e));
    write_texts(functions.spelled(chosen), data.features, r);
    r.rmse_formula = formula::rms_error(chosen, data.test_x, data.test_y[t]);
    r.rmse_network = rms(data.predicted[t], data.test_y[t]);
    for (const formula::ExplainedEdge& e : edges)
      if (functions.fixes(e.layer, e.from, e.to) && e.kept && e.candidates.empty())
        r.note += fmt::format(
            "; edge {}.{}.{} became its mean, because its function is not defined on its values or makes one that is "
            "forbidden",
            e.layer, e.from, e.to);
    if (!std::isfinite(r.rmse_formula))
      r.note += fmt::format("{}it is not defined on all rows that it is measured on", r.note.empty() ? "" : "; ");
    reports.push_back(std::move(r));
  }
  return reports;
}

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
  if (report && !options->worse && report->rmse > kMuch * report->rmse_before)
    report->warnings.push_back(
        fmt::format("the RMSE is {:.3g}, before {:.3g}: too much was removed; a smaller threshold, or a bound such as "
                    "worse = 0.1, removes less",
                    report->rmse, report->rmse_before));
  return report;
}

Result<nlohmann::json> session_formula(const Exec& ex, Session& session, const RowDataset<double>* rows,
                                       const FormulaSearchOptions& options,
                                       const std::function<void(double, double)>& progress) {
  auto data = data_of(session, {.rows = rows});
  if (!data) return data.error();
  return to_json(find_formulas(ex, *data, options, progress));
}

Result<ScoresReport> session_scores(Session& session, const RowDataset<double>* rows) {
  auto data = data_of(session, {.rows = rows});
  if (!data) return data.error();
  const formula::Scores scores = formula::score(data->network, data->column_of);
  ScoresReport report;
  report.inputs = named(data->features, scores.nodes[0]), report.columns = named(data->columns, scores.columns);
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
