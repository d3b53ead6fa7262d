// The constants of a formula, fitted to data and snapped.
#pragma once

#include "gradloom/formula/expression.h"

namespace gradloom::formula {

// Largest |e - y| over the rows; infinite where e is not finite.
double largest_error(const Expr& e, const Columns& x, const std::vector<double>& y);
double rms_error(const Expr& e, const Columns& x, const std::vector<double>& y);

// Fits the inexact constants by damped least squares, from where they are.
Expr refine_constants(const Expr& e, const Columns& x, const std::vector<double>& y, int iterations = 8);

// Replaces inexact constants by exact ones that are nearby, as long as the largest error stays below `allowed`.
Expr snap_constants(const Expr& e, const Columns& x, const std::vector<double>& y, double allowed, double tolerance);

}  // namespace gradloom::formula
