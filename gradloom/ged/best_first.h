// A second, independent exact search: A* over the nodes of the first side in order, with bounds from label counts.
#pragma once

#include "gradloom/ged/pair_solver.h"

namespace gradloom::ged {

// Shares nothing with Search but the problem. Keeps every open partial mapping, at most 2^22 of them: beyond that, or
// at a limit, the answer is a bracket. Problems without forbidden pairs only.
PairAnswer solve_best_first(const Problem& problem, const SearchLimits& limits);

}  // namespace gradloom::ged
