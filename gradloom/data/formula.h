// Datasets from formulas: random points and the values of a formula there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/data/rows.h"

namespace gradloom {

struct FormulaOptions {
  std::vector<std::string> formulas;     // one for each target, in the variables below
  std::vector<std::string> variables;    // empty: x1, x2, ... up to the last one used
  std::vector<double> ranges = {-1, 1};  // low, high for all variables, or low1, high1, low2, high2, ...
  std::size_t samples = 1000;
  double noise = 0;  // standard deviation of what is added to each target
  std::uint64_t seed = 0;
};

// Sample s is a function of (seed, s): more samples continue fewer. Variables are uniform in [low, high).
//
// Formulas have + - * / ^ (and **), comparisons, a ? b : c, the constants pi and e, and the functions sin cos tan asin
// acos atan atan2 sinh cosh tanh asinh acosh atanh exp log (natural) ln log2 log10 sqrt cbrt abs sign floor ceil rint
// min max sum avg pow hypot mod erf erfc gamma lgamma bessel_j0 bessel_j1 bessel_j(n, x) step sigmoid relu, and arcsin
// arccos arctan.
//
// Fails with invalid_input (names the formula, the position and the token) or numeric (names the sample and its
// variables). `classes`: the values of the one formula are labels rather than targets.
Result<RowDataset<double>> rows_from_formulas(const FormulaOptions& options, bool classes = false);

}  // namespace gradloom
