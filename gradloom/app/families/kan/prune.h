// Spline networks without the parts that matter little.
#pragma once

#include "gradloom/base/result.h"
#include "gradloom/session/session.h"

namespace gradloom::app {

struct PruneOptions;
struct PruneReport;
struct RunOptions;

// Writes the model without what matters little. Fails as kan_formula_data() does, with invalid_input where there are no
// data, io.
Result<PruneReport> prune_kan(Session& session, const RunOptions& run, const PruneOptions& options);

// Throws invalid_input on options for pruning that contradict each other or have no effect.
void check_prune_options(const Session& session);

}  // namespace gradloom::app
