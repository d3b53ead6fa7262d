// Where a formula is defined: also a little outside of the rows that it was made from.
#pragma once

#include "gradloom/formula/expression.h"

namespace gradloom::formula {

struct Range {
  double low = 0, high = 0;
};

// The range of some numbers, 5 % wider on each side. Numbers that are never negative stay so, and positive ones
// positive; likewise of the other sign.
Range wider_range(const std::vector<double>& values);

// The rows, moved away from the middle of each column so that they fill its wider range.
Columns wider_rows(const Columns& x);

// Whether an expression and all of its parts are finite at these points, and continuous between them: a denominator
// that changes its sign from one to another, or a tangent that passes a pole, has no value somewhere in their box.
bool defined_on(const Expr& e, const Columns& points, std::size_t rows);

}  // namespace gradloom::formula
