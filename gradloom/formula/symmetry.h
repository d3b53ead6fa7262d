// Symmetries of a function, read from the gradients of a surrogate.
#pragma once

#include "gradloom/formula/surrogate.h"

namespace gradloom::formula {

// f is M(x) g(invariants): scale: sum_i a_i x_i df/dx_i = k f, the invariants and M are monomials. shift: sum_i a_i
// df/dx_i = 0, the invariants are linear. square: sum_i a_i df/dx_i / x_i = 0, linear in the squares.
struct Symmetry {
  enum Kind { scale, shift, square } kind = scale;
  std::vector<std::vector<Rational>> a;  // (relations, variables)
  std::vector<Rational> k;               // (relations)
  double residual = 0;                   // of the snapped relation, relative
};

// Most relations first, then the smallest residual.
std::vector<Symmetry> find_symmetries(const Problem& problem, const Surrogate& surrogate, Work& work);

// The variables that are left, in the variables of the data, and M.
struct Reduction {
  std::vector<Expr> variables;
  Expr factor;
};
std::optional<Reduction> reduce(const Symmetry& symmetry, const Problem& problem);

}  // namespace gradloom::formula
