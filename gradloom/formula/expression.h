// Expressions: immutable trees in variables 0, 1, ... that simplify themselves as they are built.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/formula/constant.h"

namespace gradloom::formula {

enum class Function {
  exp,
  log,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  abs,
  erf,
};
inline constexpr Choice<Function> kFunctions[] = {
    {Function::exp, "exp", "exponential"},
    {Function::log, "log", "natural logarithm"},
    {Function::sin, "sin", "sine"},
    {Function::cos, "cos", "cosine"},
    {Function::tan, "tan", "tangent"},
    {Function::asin, "asin", "inverse sine"},
    {Function::acos, "acos", "inverse cosine"},
    {Function::atan, "atan", "inverse tangent"},
    {Function::sinh, "sinh", "hyperbolic sine"},
    {Function::cosh, "cosh", "hyperbolic cosine"},
    {Function::tanh, "tanh", "hyperbolic tangent"},
    {Function::asinh, "asinh", "inverse hyperbolic sine"},
    {Function::acosh, "acosh", "inverse hyperbolic cosine"},
    {Function::atanh, "atanh", "inverse hyperbolic tangent"},
    {Function::abs, "abs", "absolute value"},
    {Function::erf, "erf", "error function"},
};
double apply(Function f, double x);
double raise(double x, Rational exponent);  // x ^ exponent

enum class Op { number, variable, add, multiply, power, call };

struct Node;
using Expr = std::shared_ptr<const Node>;  // never null where it is an argument

struct Node {
  Op op = Op::number;
  Constant number;           // op number
  std::size_t variable = 0;  // op variable
  Rational exponent;         // op power: args[0] ^ exponent
  Function function = Function::exp;
  std::vector<Expr> args;
  std::string key;  // equal keys are equal expressions
};

Expr number(const Constant& c);
Expr number(std::int64_t value);
Expr approximate(double value);  // an inexact number
Expr variable(std::size_t index);
// Sums and products are flat, like terms and equal bases are collected, constants folded.
Expr add(std::vector<Expr> terms);
Expr multiply(std::vector<Expr> factors);
Expr power(const Expr& base, Rational exponent);
Expr call(Function f, const Expr& argument);

inline Expr operator+(const Expr& a, const Expr& b) { return add({a, b}); }
inline Expr operator*(const Expr& a, const Expr& b) { return multiply({a, b}); }
inline Expr operator-(const Expr& a) { return multiply({number(-1), a}); }
inline Expr operator-(const Expr& a, const Expr& b) { return add({a, -b}); }
inline Expr operator/(const Expr& a, const Expr& b) { return multiply({a, power(b, {-1, 1})}); }
inline Expr sqrt(const Expr& a) { return power(a, {1, 2}); }

// Columns of numbers of the same length, one for each variable.
using Columns = std::vector<std::vector<double>>;

// One value for each row; where the expression is not defined it is not finite. `rows` counts when there are no
// columns.
std::vector<double> evaluate(const Expr& e, const Columns& columns, std::size_t rows);

// Nodes of the tree; a power counts as two, and so does a constant that is not exact.
std::size_t complexity(const Expr& e);
std::size_t inexact_constants(const Expr& e);
std::vector<bool> variables_used(const Expr& e, std::size_t variables);

// The same expression with its inexact constants replaced, in the order of a walk from the root, first argument first.
std::vector<double> constants_of(const Expr& e);
Expr with_constants(const Expr& e, std::span<const Constant> values);
// The same operation on other arguments, as many as it had.
Expr with_args(const Node& n, std::vector<Expr> args);
// Variable i becomes replacements[i].
Expr substitute(const Expr& e, std::span<const Expr> replacements);

}  // namespace gradloom::formula
