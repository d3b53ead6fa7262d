// Formulas in files of their own: read, applied to new data, and fitted to them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gradloom/app/formula/formula.h"
#include "gradloom/app/predict/predict.h"

namespace gradloom::app {

// What `gradloom formula --json` printed, as an object; each formula is read.
struct StoredFormulas {
  nlohmann::json object;
  std::vector<std::string> inputs;
  std::vector<std::string> targets;
  std::vector<formula::Expr> formulas;  // (targets), in the inputs
};

// Fails with not_found, io, invalid_input (no such object, or a text that is no formula of its inputs).
Result<StoredFormulas> read_formulas(const std::filesystem::path& file);
Result<StoredFormulas> formulas_from_json(nlohmann::json object, const std::string& name);

// Whether a model is given by a file of formulas rather than as a run or a model file: by the end of its name, .json.
bool is_formula_file(const std::filesystem::path& model);

// Columns are matched by the names of inputs and targets; others are left out. Fails as load_new_rows() does.
Result<PredictReport> predict_formulas(const std::filesystem::path& model, const std::filesystem::path& data_root,
                                       const PredictOptions& what);

// The same formulas with their numbers fitted to rows: all but exponents, 1 and -1. A formula that explains the rows as
// well as it is stays as it is. `x` (inputs), `y` (targets) are columns.
nlohmann::json fit_formulas(const StoredFormulas& stored, const formula::Columns& x,
                            const std::vector<std::vector<double>>& y);
Result<nlohmann::json> fit_formulas_to(const std::filesystem::path& model, const std::filesystem::path& data);

}  // namespace gradloom::app
