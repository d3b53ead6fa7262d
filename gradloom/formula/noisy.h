// The search for a formula that data with noise are consistent with.
#pragma once

#include "gradloom/formula/search.h"

namespace gradloom::formula {

struct NoisyResult {
  std::optional<Expr> formula;  // none: nothing simple explains the data down to their noise
  double rmse = 0;              // on rows that the search did not see
  double noise = 0;             // standard deviation that a smooth function leaves
  double work = 0;
  std::vector<std::string> steps;
};

// A formula is taken when its error on n unseen rows is at most 1.1 (1 + 2 / sqrt(2 n)) times the noise: the simplest
// of those whose errors cannot be told apart. Never called exact. Throws as search_formula does.
NoisyResult search_noisy(const Exec& ex, const Table& table, const SearchOptions& options = {});

}  // namespace gradloom::formula
