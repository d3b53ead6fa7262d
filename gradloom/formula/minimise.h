// Minimisation of smooth functions of few variables, in double precision.
#pragma once

#include <functional>

#include "gradloom/formula/relation.h"

namespace gradloom::formula {

// The value at x; fills the gradient. A value that is not finite is never accepted.
using Objective = std::function<double(const Vector& x, Vector& gradient)>;

struct MinimiseOptions {
  int iterations = 60;
  double tolerance = 1e-9;  // stops when a step gains less, relative to the value
  int history = 10;
};

// L-BFGS with a backtracking line search. `start` has a finite value.
Vector minimise(const Objective& f, Vector start, const MinimiseOptions& options = {});

}  // namespace gradloom::formula
