// The formula of a trained spline network: exact where one is found, else the best approximation edge by edge.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gradloom/app/formula/data.h"
#include "gradloom/app/run/run.h"
#include "gradloom/io/fields.h"

namespace gradloom::app {

struct FormulaOptions {
  double effort = 60000;               // of the search, in units of a million multiply-adds
  double threshold = 1e-3;             // edges that score less are left out of approximations
  std::vector<std::string> functions;  // of the library; empty: all
  std::filesystem::path data;          // rows to search on instead of those of the run; empty: those
  bool again = false;                  // search although the run has a stored formula
};

struct FormulaScore {
  std::string name;
  double score = 0, error = 0;  // and its standard error
  GRADLOOM_FIELDS(name, score, error)
};

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
  double rmse_formula = 0, rmse_network = 0;  // on the test rows, or on the rows where there are none
  std::size_t complexity = 0;
  std::vector<std::string> steps;  // how an exact formula was found
  double work = 0;                 // units that the search used
  bool exhausted = false;          // the effort was used up before the search ended
  std::vector<FormulaScore> inputs;
  std::vector<FormulaEdge> edges;
  std::string note;
  GRADLOOM_FIELDS(target, status, text, latex, sympy, python, c, rmse_formula, rmse_network, complexity, steps, work,
                  exhausted, inputs, edges, note)
};

// One for each target.
std::vector<FormulaReport> find_formulas(const Exec& ex, const FormulaData& data, const FormulaOptions& options,
                                         const std::function<void(double used, double limit)>& progress);
// The first one's keys; with several targets, all of them under `targets` too.
nlohmann::json to_json(const std::vector<FormulaReport>& reports);

// `model` is the folder of a run, or a model file. A formula that a run has stored is returned as it is, unless `again`
// or other data are asked for. Fails as predict() does, with unsupported for models that have no formulas.
Result<nlohmann::json> model_formula(const std::filesystem::path& model, const RunOptions& run,
                                     const FormulaOptions& options,
                                     const std::function<void(double used, double limit)>& progress);

inline constexpr const char* kFormulaFile = "formula.json";  // in the folder of a run

}  // namespace gradloom::app
