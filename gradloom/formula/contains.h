// Whether a formula is made of a function of the library: what forbidding one means.
#pragma once

#include "gradloom/formula/library.h"

namespace gradloom::formula {

// Functions that contains() can find: all of the library but "0" and "x", which no formula can do without.
bool can_be_found(const LibraryFunction& f);

// Whether `f` stands in the expression, whatever its argument. Parts without a variable are numbers and do not count.
//   called functions (sin, exp, ...)  are called;
//   x^n, sqrt, x^(3/2), and inverses  are a power x^(k n) for a whole k above 0; x^n also for one below 0, because
//                                     u^-2 is 1/u^2; "1/x" is any division by what varies;
//   gaussian  exp of a sum that has a square, unless each of them has a coefficient above 0;
//   sigmoid   a division by a sum that has an exponential, lorentz by one that has a square, unless the sum has a
//             number and all of these have the other sign: 1/(e^x - 1) is no sigmoid, 1/(1 - x^2) no lorentz.
// What only has equal values, as (e^x - e^-x)/2 and sinh(x), is not the same. Throws unless can_be_found(f).
bool contains(const Expr& e, const LibraryFunction& f);

// The same of an expression without variables, as print() writes it: sqrt(2), pi^2, exp(1).
bool is_written_with(const Expr& constant, const LibraryFunction& f);

bool has_variable(const Expr& e);

}  // namespace gradloom::formula
