// What formulas of spline networks are made from.
#pragma once

#include <filesystem>

#include "gradloom/app/formula/data.h"
#include "gradloom/base/result.h"
#include "gradloom/io/run_folder.h"
#include "gradloom/session/families/kan/family.h"
#include "gradloom/session/typed_session.h"

namespace gradloom::app {

struct RunOptions;

Result<FormulaData> kan_formula_data(Session& session, const FormulaRows& rows);

// What columns and edges contribute on the training rows: `columns` and `edges` as the report of a formula has them,
// without candidates.
template <class T>
nlohmann::json kan_scores(const TypedSession<KanFamily<T>>& session);

// Throws invalid_input on functions of the recipe that are not known, cannot be read, or name an edge that is not
// there.
void check_formula_options(const Session& session);

// The formula of a run whose recipe asks for one; it is also stored in the folder, where there is one. Null: none
// asked.
Result<nlohmann::json> finish_kan_run(Session& session, const RunOptions& options, const RunFolder* folder);

}  // namespace gradloom::app
