// The simple functions of one variable that relations are made of.
#pragma once

#include <string_view>
#include <vector>

#include "gradloom/formula/expression.h"
#include "gradloom/formula/relation.h"

namespace gradloom::formula {

// A function of one variable: its values on the rows, and how it is written.
struct Atom {
  int complexity = 0;
  Vector values;  // empty: the constant 1
  Expr text;
};

enum class Alphabet {
  poly,  // x, x^2, ...
  trig,  // cos x, sin x, x, cos^2 x, cos x sin x, x^2
  exp,   // x, e^x, e^-x, x^2
  log,   // x, log x, x^2, x log x
  root,  // x^(1/2), x, x^(3/2), ...
  trig_only,
  exp_only,
  log_only,
  root_only,
};

// A variable of a problem: its values, and what it is in the variables of the data.
struct Variable {
  Vector values;
  Expr text;
};

bool fits(Alphabet alphabet, const Vector& values);  // logs and roots need positive numbers

// The constant 1 first; up to `complexity`, where the alphabet is open.
std::vector<Atom> atoms(const Variable& variable, Alphabet alphabet, int complexity);

// A product of atoms, one of each list.
struct Product {
  int complexity = 0;
  std::vector<const Atom*> factors;  // those that are not 1
};
// All products of at most this complexity. The atoms must outlive them.
std::vector<Product> products(const std::vector<std::vector<Atom>>& lists, int complexity);

Vector values_of(const Product& product, Eigen::Index rows);
Expr text_of(const Product& product);

// The outer function: g(y) takes part in the relation, and y = inverse(P/Q).
struct Outer {
  enum Kind { identity, square, log, exp, sin, cos, tan, atanh } kind;
};
inline constexpr Outer::Kind kOuters[] = {Outer::identity, Outer::square, Outer::log, Outer::exp,
                                          Outer::sin,      Outer::cos,    Outer::tan, Outer::atanh};
// g(y), or an empty vector where g cannot be inverted on these numbers.
Vector outer_values(Outer::Kind kind, const Vector& y);
// y from g(y); `negative` says that y is (square, log).
Expr outer_inverse(Outer::Kind kind, const Expr& g, bool negative);

}  // namespace gradloom::formula
