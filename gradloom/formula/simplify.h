// Shorter forms of an expression, equal where the data are.
#pragma once

#include "gradloom/formula/expression.h"

namespace gradloom::formula {

// `positive` says which variables are positive wherever the expression is used: their powers leave roots. Products are
// multiplied out where that is shorter.
Expr simplify(const Expr& e, const std::vector<bool>& positive);

}  // namespace gradloom::formula
