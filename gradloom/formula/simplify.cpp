#include "gradloom/formula/simplify.h"

#include <algorithm>
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

// sin(u) cos(u) is sin(2 u)/2.
Expr double_angle(const Expr& e) {
  if (e->op != Op::multiply) return e;
  const auto called = [](const Expr& f, Function g) { return f->op == Op::call && f->function == g; };
  for (const Expr& s : e->args)
    for (const Expr& c : e->args) {
      if (!called(s, Function::sin) || !called(c, Function::cos) || s->args[0]->key != c->args[0]->key) continue;
      std::vector<Expr> factors{number(Constant::of({1, 2})), call(Function::sin, number(2) * s->args[0])};
      for (const Expr& f : e->args)
        if (f != s && f != c) factors.push_back(f);
      return multiply(std::move(factors));
    }
  return e;
}

// Whether every term but a number has a factor below 0.
bool negative(const Expr& e) {
  if (e->op == Op::multiply) return e->args[0]->op == Op::number && e->args[0]->number.value < 0;
  return e->op == Op::add && std::all_of(e->args.begin(), e->args.end(), [](const Expr& t) {
           return t->op == Op::number || (t->op == Op::multiply && negative(t));
         });
}

// sin(u + k pi/2) and cos(u + k pi/2) by u alone, and by -u where u is negative.
Expr turned(Function f, const Expr& argument) {
  const bool shifted = argument->op == Op::add && argument->args[0]->op == Op::number;
  const Constant c = shifted ? argument->args[0]->number : Constant::of(0);
  const Rational quarters = c.ratio + c.ratio;
  int turns = f == Function::sin ? 0 : 1;  // quarters before the sine
  Expr u = argument;
  if (shifted && c.exact && c.pi_power == 1 && c.root_two == 0 && quarters.integer()) {
    turns += static_cast<int>(quarters.p % 4);
    u = add({argument->args.begin() + 1, argument->args.end()});
  }
  if (negative(u)) u = -u, turns = 2 - turns;  // sin(-v + t) is -sin(v - t)
  turns = (turns % 4 + 4) % 4;
  const Expr value = call(turns % 2 == 0 ? Function::sin : Function::cos, u);
  return turns < 2 ? value : -value;
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
      const Expr product = double_angle(multiply(std::move(args)));
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
      if (e->function == Function::exp) return split_exponential(args[0]);
      if (e->function == Function::sin || e->function == Function::cos) return turned(e->function, args[0]);
      return call(e->function, args[0]);
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
