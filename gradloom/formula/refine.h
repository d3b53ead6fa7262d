// The constants of a formula, fitted to data and snapped.
#pragma once

#include "gradloom/formula/expression.h"
#include "gradloom/formula/work.h"

namespace gradloom::formula {

// Largest |e - y| over the rows; infinite where e is not finite.
double largest_error(const Expr& e, const Columns& x, const std::vector<double>& y);
double rms_error(const Expr& e, const Columns& x, const std::vector<double>& y);

struct RefineOptions {
  int iterations = 8;
  std::size_t block = 100;           // constants that are fitted together: more of them in turn, block by block
  const Columns* defined = nullptr;  // points where the expression stays defined (domain.h); may be null
  Work* work = nullptr;              // what it is counted as; once that is exhausted, no step begins. May be null
};

// Fits the inexact constants by damped least squares, from where they are.
Expr refine_constants(const Expr& e, const Columns& x, const std::vector<double>& y, const RefineOptions& options = {});

// Replaces inexact constants by exact ones that are nearby, as long as the largest error stays below `allowed`.
Expr snap_constants(const Expr& e, const Columns& x, const std::vector<double>& y, double allowed, double tolerance);

}  // namespace gradloom::formula
