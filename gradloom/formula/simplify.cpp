#include "gradloom/formula/simplify.h"

#include <cmath>

namespace gradloom::formula {
namespace {

bool is_positive(const Expr& e, const std::vector<bool>& positive) {
  switch (e->op) {
    case Op::number:
      return e->number.value > 0;
    case Op::variable:
      return positive.at(e->variable);
    case Op::add:
    case Op::multiply:
      for (const Expr& a : e->args)
        if (!is_positive(a, positive)) return false;
      return true;
    case Op::power:
      return is_positive(e->args[0], positive);
    case Op::call:
      return e->function == Function::exp || e->function == Function::cosh;
  }
  return false;
}

// Factors that are positive leave the root.
Expr split_root(const Expr& e, const std::vector<bool>& positive) {
  const Expr& base = e->args[0];
  if (base->op == Op::power && is_positive(base->args[0], positive))
    return power(base->args[0], base->exponent * e->exponent);
  if (base->op != Op::multiply) return e;
  std::vector<Expr> outside, inside;
  for (const Expr& f : base->args) {
    const bool leaves = f->op != Op::number && f->op != Op::add && is_positive(f, positive);
    if (leaves)
      outside.push_back(f->op == Op::power ? power(f->args[0], f->exponent * e->exponent) : power(f, e->exponent));
    else
      inside.push_back(f);
  }
  if (outside.empty()) return e;
  outside.push_back(power(multiply(std::move(inside)), e->exponent));
  return multiply(std::move(outside));
}

// One sum among the factors, multiplied out with all others.
Expr expanded(const Expr& e) {
  for (std::size_t i = 0; i < e->args.size(); ++i) {
    if (e->args[i]->op != Op::add) continue;
    std::vector<Expr> terms;
    for (const Expr& t : e->args[i]->args) {
      std::vector<Expr> factors = e->args;
      factors[i] = t;
      terms.push_back(multiply(std::move(factors)));
    }
    return add(std::move(terms));
  }
  return e;
}

// A root of a sum whose terms share a denominator: sqrt(1 + a/b^2) is sqrt(b^2 + a)/b for positive b, if that is
// shorter.
Expr over_common(const Expr& e, const std::vector<bool>& positive) {
  const Expr& sum = e->args[0];
  if (sum->op != Op::add) return e;
  Expr best = e;
  for (const Expr& t : sum->args)
    for (const Expr& f : t->op == Op::multiply ? t->args : std::vector<Expr>{t}) {
      if (f->op != Op::power || f->exponent.p > 0 || !is_positive(f->args[0], positive)) continue;
      const Expr inverse = power(f, {-1, 1});
      std::vector<Expr> terms;
      for (const Expr& u : sum->args) terms.push_back(u * inverse);
      const Expr other = power(add(std::move(terms)), e->exponent) * power(f->args[0], f->exponent * e->exponent);
      if (complexity(other) < complexity(best)) best = other;
    }
  return best;
}

// e^(a log x + c + rest) is x^a e^c e^rest, for fractions a and numbers c that are not exact.
Expr split_exponential(const Expr& argument) {
  std::vector<Expr> factors, rest;
  for (const Expr& t : argument->op == Op::add ? argument->args : std::vector<Expr>{argument}) {
    const bool scaled = t->op == Op::multiply && t->args.size() == 2 && t->args[0]->op == Op::number;
    const Expr& bare = scaled ? t->args[1] : t;
    const Constant c = scaled ? t->args[0]->number : Constant::of(1);
    const bool fraction = c.exact && c.pi_power == 0 && c.root_two == 0;
    if (bare->op == Op::call && bare->function == Function::log && fraction)
      factors.push_back(power(bare->args[0], c.ratio));
    else if (t->op == Op::number && !t->number.exact)
      factors.push_back(number(snap(std::exp(t->number.value))));
    else
      rest.push_back(t);
  }
  if (!rest.empty()) factors.push_back(call(Function::exp, add(std::move(rest))));
  return multiply(std::move(factors));
}

Expr pass(const Expr& e, const std::vector<bool>& positive) {
  std::vector<Expr> args;
  for (const Expr& a : e->args) args.push_back(pass(a, positive));
  switch (e->op) {
    case Op::number:
    case Op::variable:
      return e;
    case Op::add:
      return add(std::move(args));
    case Op::multiply: {
      const Expr product = multiply(std::move(args));
      if (product->op != Op::multiply) return product;
      const Expr sum = expanded(product);
      return complexity(sum) < complexity(product) ? sum : product;
    }
    case Op::power: {
      const Expr p = power(args[0], e->exponent);
      if (p->op != Op::power || p->exponent.integer()) return p;
      const Expr split = split_root(p, positive);
      return split->op == Op::power ? over_common(split, positive) : split;
    }
    case Op::call:
      return e->function == Function::exp ? split_exponential(args[0]) : call(e->function, args[0]);
  }
  return e;
}

}  // namespace

Expr simplify(const Expr& e, const std::vector<bool>& positive) {
  Expr best = e;
  for (int round = 0; round < 6; ++round) {
    const Expr next = pass(best, positive);
    if (next->key == best->key) break;
    best = next;
  }
  return complexity(best) <= complexity(e) ? best : e;
}

}  // namespace gradloom::formula
