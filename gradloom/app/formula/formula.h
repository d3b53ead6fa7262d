// The formula of a trained spline network: exact where one is found, else the best approximation edge by edge.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/app/formula/data.h"
#include "gradloom/app/run/run.h"
#include "gradloom/io/fields.h"

namespace gradloom::app {

struct FormulaSearchOptions : formula::FunctionOptions {
  double effort = 60000;       // of the search, in units of a million multiply-adds
  double threshold = 1e-3;     // edges that score less are left out of approximations
  std::filesystem::path data;  // rows to search on instead of those of the run; empty: those
  bool again = false;          // search although the run has a stored formula
  Comm* comm = nullptr;        // ranks that search the same rows together, each some of the candidates; not owned
  // Once it is set, the search ends, and the formula is an approximation; without effect where ranks search together.
  const std::atomic<bool>* stop = nullptr;  // not owned
};

struct FormulaScore {
  std::string name;
  double score = 0, error = 0;  // and its standard error
  GRADLOOM_FIELDS(name, score, error)
};

std::vector<FormulaScore> named_scores(const std::vector<std::string>& names,
                                       const std::vector<formula::Score>& scores);

struct FormulaCandidate {
  std::string function, text;  // in x
  double r2 = 0, rmse = 0;
  int complexity = 0;
  GRADLOOM_FIELDS(function, text, r2, rmse, complexity)
};

struct FormulaEdge {
  std::size_t layer = 0, from = 0, to = 0;
  double score = 0, error = 0;
  bool kept = true;
  std::vector<FormulaCandidate> candidates;  // best first
  GRADLOOM_FIELDS(layer, from, to, score, error, kept, candidates)
};

struct FormulaReport {
  std::string target;
  // "exact": holds on all rows, also on those that the search did not see; "consistent": down to the noise of the data;
  // "approximate".
  std::string status;
  std::string text, latex, sympy, python, c;
  std::vector<std::string> variables;  // the names of the inputs in sympy, python and c
  // On the test rows, or on the rows where there are none; a formula that is not defined on all of them has no error.
  double rmse_formula = 0, rmse_network = 0;
  std::size_t complexity = 0;
  std::vector<std::string> steps;  // how an exact formula was found
  double work = 0;                 // units that the search used
  bool exhausted = false;          // the effort was used up before the search ended
  std::vector<FormulaScore> inputs;
  std::vector<FormulaScore> columns;  // of the table: one of categories has the sum of its inputs
  std::vector<FormulaEdge> edges;
  std::string note;
  GRADLOOM_FIELDS(target, status, text, latex, sympy, python, c, variables, rmse_formula, rmse_network, complexity,
                  steps, work, exhausted, inputs, columns, edges, note)
};

// The formula in every notation, with its variables and complexity; `names` are those of the inputs.
void write_texts(const formula::Expr& e, const std::vector<std::string>& names, FormulaReport& report);

// One for each target. Throws invalid_input on functions that are not known or cannot be read, and io where ranks have
// other rows.
std::vector<FormulaReport> find_formulas(const Exec& ex, const FormulaData& data, const FormulaSearchOptions& options,
                                         const std::function<void(double used, double limit)>& progress);
// The first one's keys; with several targets, all of them under `targets` too.
nlohmann::json to_json(const std::vector<FormulaReport>& reports);

// `model` is the folder of a run, a model file, or a file of formulas (stored.h), which is returned with its numbers
// fitted to `options.data` where that names some. `warnings` of the object are those of opening a run. A formula that
// a run has stored is returned as it is, unless `again`, other data or other functions are asked for. Fails as
// predict() does, with unsupported for models that have no formulas. Ranks (run.comm) that all see the model and the
// data share the search; else rank 0 makes it, and the others return nothing.
Result<nlohmann::json> model_formula(const std::filesystem::path& model, const RunOptions& run,
                                     const FormulaSearchOptions& options,
                                     const std::function<void(double used, double limit)>& progress);

// The same of a session in memory and rows in memory; null: the formula approximates the network.
Result<nlohmann::json> session_formula(const Exec& ex, Session& session, const RowDataset<double>* rows,
                                       const FormulaSearchOptions& options,
                                       const std::function<void(double used, double limit)>& progress);

// The shares of the output's variance that come through inputs, nodes and edges.
struct ScoresReport {
  std::vector<FormulaScore> inputs, columns;
  std::vector<std::vector<double>> nodes, node_errors;  // (layer, i): hidden ones, by layer
  std::vector<FormulaEdge> edges;                       // without candidates
  GRADLOOM_FIELDS(inputs, columns, nodes, node_errors, edges)
};
Result<ScoresReport> session_scores(Session& session, const RowDataset<double>* rows);

// At most one of threshold, inputs and worse is set; with none the threshold is kPruneThreshold.
inline constexpr double kPruneThreshold = 0.01;
struct PruneOptions {
  std::filesystem::path out;                 // the smaller model's file
  std::filesystem::path data;                // rows to score on instead of those of the run; empty: those
  const RowDataset<double>* rows = nullptr;  // rows in memory instead
  std::optional<double> threshold;           // drop what has a smaller share of the variance
  std::optional<std::size_t> inputs;         // the number of inputs to keep
  std::optional<double> worse;               // drop as much as makes the error worse by at most this share
};

struct PruneReport {
  std::string out;
  std::vector<std::string> kept, removed;  // inputs
  std::vector<std::size_t> widths, widths_before;
  std::size_t parameters = 0, parameters_before = 0;
  std::size_t edges = 0, edges_before = 0;  // that do something
  double threshold = 0;                     // that was used; 0 when inputs were counted
  double change = 0;                        // largest difference of an output (of classes: a logit) on the rows
  // On the test rows, or on the rows where there are none: of numbers, or the mean cross entropy of classes.
  std::optional<double> rmse, rmse_before, loss, loss_before;
  std::vector<FormulaScore> inputs;   // scores before
  std::vector<std::string> warnings;  // of opening a run; that the error has grown much
  GRADLOOM_FIELDS(out, kept, removed, widths, widths_before, parameters, parameters_before, edges, edges_before,
                  threshold, change, rmse, rmse_before, loss, loss_before, inputs, warnings)
};

// Of the folder of a run, or of a model file with data. Fails as predict() does, and with invalid_input on options that
// exclude each other.
Result<PruneReport> prune_model(const std::filesystem::path& model, const RunOptions& run, const PruneOptions& options);

// The same of a session in memory; options.rows are given.
Result<PruneReport> prune_session(Session& session, const RunOptions& run, const PruneOptions& options);

inline constexpr const char* kFormulaFile = "formula.json";  // in the folder of a run

}  // namespace gradloom::app
