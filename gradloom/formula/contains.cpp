#include "gradloom/formula/contains.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "gradloom/base/error.h"

namespace gradloom::formula {
namespace {

bool is_exponential(const Expr& e) { return e->op == Op::call && e->function == Function::exp; }

// The variables that an expression is a polynomial of, outside of calls, roots and divisions.
void polynomial_variables(const Expr& e, std::set<std::size_t>& found) {
  if (e->op == Op::variable) found.insert(e->variable);
  if (e->op == Op::call || (e->op == Op::power && !(e->exponent.integer() && e->exponent.p > 0))) return;
  for (const Expr& a : e->args) polynomial_variables(a, found);
}

bool share_a_variable(const std::vector<Expr>& factors) {
  std::set<std::size_t> seen;
  for (const Expr& f : factors) {
    std::set<std::size_t> own;
    polynomial_variables(f, own);
    for (const std::size_t v : own)
      if (!seen.insert(v).second) return true;
  }
  return false;
}

// An even power, or a product such as x (x + 1), in sums, products and whole powers.
bool has_square(const Expr& e) {
  const bool below = std::any_of(e->args.begin(), e->args.end(), has_square);
  if (e->op == Op::add) return below;
  if (e->op == Op::multiply) return below || share_a_variable(e->args);
  return e->op == Op::power && e->exponent.integer() && has_variable(e) && (below || e->exponent.p % 2 == 0);
}

bool has_exponential(const Expr& e) {
  if (is_exponential(e)) return has_variable(e);
  return e->op != Op::call && std::any_of(e->args.begin(), e->args.end(), has_exponential);
}

// 1 or -1: that of a number times even powers and exponentials; 0: not known.
int sign_of(const Expr& e) {
  if (e->op == Op::number) return e->number.value < 0 ? -1 : 1;
  if (is_exponential(e)) return 1;
  if (e->op == Op::power) return e->exponent.integer() && e->exponent.p % 2 == 0 ? 1 : 0;
  if (e->op != Op::multiply) return 0;
  int sign = 1;
  for (const Expr& f : e->args) sign *= sign_of(f);
  return sign;
}

std::vector<Expr> terms_of(const Expr& e) { return e->op == Op::add ? e->args : std::vector<Expr>{e}; }

bool is_gaussian(const Expr& e) {
  if (!is_exponential(e)) return false;
  const std::vector<Expr> terms = terms_of(e->args[0]);
  return std::any_of(terms.begin(), terms.end(), [](const Expr& t) { return has_square(t) && sign_of(t) != 1; });
}

// A division by a sum in which `part` is true of a term.
bool divides_by(const Expr& e, bool (*part)(const Expr&)) {
  if (e->op != Op::power || e->exponent.p >= 0 || e->args[0]->op != Op::add) return false;
  const std::vector<Expr>& terms = e->args[0]->args;
  const auto number = std::find_if(terms.begin(), terms.end(), [](const Expr& t) { return !has_variable(t); });
  const int other = number == terms.end() || (*number)->op != Op::number ? 0 : -sign_of(*number);
  return std::any_of(terms.begin(), terms.end(),
                     [&](const Expr& t) { return part(t) && (other == 0 || sign_of(t) != other); });
}

bool is_power(Rational have, Rational n) {
  if (n == Rational{-1, 1}) return have.p < 0;
  return have.q == n.q && have.p % n.p == 0 && (n.p > 0 || have.p < 0);
}

bool stands_at(const Expr& e, const LibraryFunction& f) {
  if (f.name == "gaussian") return is_gaussian(e);
  if (f.name == "sigmoid") return divides_by(e, has_exponential);
  if (f.name == "lorentz") return divides_by(e, has_square);
  if (f.text->op == Op::call) return e->op == Op::call && e->function == f.text->function;
  return e->op == Op::power && is_power(e->exponent, f.text->exponent);
}

void require_findable(const LibraryFunction& f) {
  if (!can_be_found(f)) throw_invalid(fmt::format("'{}' is not a function that formulas are searched for", f.name));
}

}  // namespace

bool has_variable(const Expr& e) {
  return e->op == Op::variable || std::any_of(e->args.begin(), e->args.end(), has_variable);
}

bool can_be_found(const LibraryFunction& f) {
  return f.name != "0" && f.name != "x" &&
         std::any_of(library().begin(), library().end(), [&](const auto& known) { return known.name == f.name; });
}

bool contains(const Expr& e, const LibraryFunction& f) {
  require_findable(f);
  if (!has_variable(e)) return false;
  return stands_at(e, f) || std::any_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return contains(a, f); });
}

bool is_written_with(const Expr& constant, const LibraryFunction& f) {
  require_findable(f);
  if (constant->op == Op::number) {
    const Constant& c = constant->number;
    if (!c.exact || f.text->op != Op::power) return false;
    const Rational n = f.text->exponent;
    return (c.root_two != 0 && is_power({1, 2}, n)) || (std::abs(c.pi_power) > 1 && is_power({c.pi_power, 1}, n));
  }
  return stands_at(constant, f) || std::any_of(constant->args.begin(), constant->args.end(),
                                               [&](const Expr& a) { return is_written_with(a, f); });
}

}  // namespace gradloom::formula
