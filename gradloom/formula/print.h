// Expressions as text, in the languages of those who read them.
#pragma once

#include <span>
#include <string>

#include "gradloom/formula/expression.h"

namespace gradloom::formula {

enum class Notation {
  text,    // x1^2*sin(x2): what the `formula` of a recipe reads
  latex,   // x_{1}^{2} \sin\left(x_{2}\right)
  sympy,   // x1**2*sin(x2): what sympify() reads
  python,  // x1**2*sin(x2): one expression in the names and functions of the module math
  c,       // pow(x1, 2.0)*sin(x2), of doubles, with <math.h>
};
inline constexpr Choice<Notation> kNotations[] = {
    {Notation::text, "text", "what recipes read"},
    {Notation::latex, "latex", "typeset"},
    {Notation::sympy, "sympy", "for sympify()"},
    {Notation::python, "python", "with the module math"},
    {Notation::c, "c", "with math.h"},
};

// Names that are no identifiers are replaced in python, sympy and c: other characters become _. Inexact constants have
// all digits that they need to be read back, and a point or an exponent. What parse_expression() read and print() wrote
// as text, parse_expression() reads with Decimals::approximate as the same expression.
std::string print(const Expr& e, std::span<const std::string> names, Notation notation);

// The names that print() uses.
std::vector<std::string> printed_names(std::span<const std::string> names, Notation notation);

}  // namespace gradloom::formula
