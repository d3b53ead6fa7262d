#include "gradloom/formula/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "gradloom/base/error.h"

namespace gradloom::formula {
namespace {

std::string key_of(const Node& n) {
  switch (n.op) {
    case Op::number:
      if (!n.number.exact) return fmt::format("{:a}", n.number.value);
      return fmt::format("{}/{}p{}r{}", n.number.ratio.p, n.number.ratio.q, n.number.pi_power, n.number.root_two);
    case Op::variable:
      return fmt::format("v{}", n.variable);
    case Op::power:
      return fmt::format("^({},{}/{})", n.args[0]->key, n.exponent.p, n.exponent.q);
    case Op::call:
      return fmt::format("{}({})", name_of<Function>(kFunctions, n.function), n.args[0]->key);
    case Op::add:
    case Op::multiply: {
      std::string key = n.op == Op::add ? "+(" : "*(";
      for (const Expr& a : n.args) key += a->key + ",";
      return key + ")";
    }
  }
  throw_invalid("an operation that does not exist");
}

Expr make(Node n) {
  n.key = key_of(n);
  return std::make_shared<const Node>(std::move(n));
}

bool is_number(const Expr& e, std::int64_t value) { return e->op == Op::number && e->number.is(value); }

// e = coefficient * rest; rest is null for a plain number.
std::pair<Constant, Expr> split_coefficient(const Expr& e) {
  if (e->op == Op::number) return {e->number, nullptr};
  if (e->op == Op::multiply && e->args.front()->op == Op::number) {
    std::vector<Expr> rest(e->args.begin() + 1, e->args.end());
    return {e->args.front()->number, rest.size() == 1 ? rest.front() : multiply(std::move(rest))};
  }
  return {Constant::of(1), e};
}

std::pair<Expr, Rational> split_power(const Expr& e) {
  if (e->op == Op::power) return {e->args[0], e->exponent};
  return {e, {1, 1}};
}

// Variables first, then what is built from them; numbers come first of all, in the products and sums that sort.
int rank_of(const Expr& e) {
  switch (e->op) {
    case Op::number:
      return 0;
    case Op::variable:
      return 1;
    case Op::power:
      return e->args[0]->op == Op::variable ? 1 : 3;
    case Op::add:
      return 4;
    case Op::multiply:
      return 2;
    case Op::call:
      return 5;
  }
  return 6;
}

bool before(const Expr& a, const Expr& b) {
  const int ra = rank_of(a), rb = rank_of(b);
  if (ra != rb) return ra < rb;
  const Expr &pa = split_power(a).first, &pb = split_power(b).first;
  if (pa->op == Op::variable && pb->op == Op::variable && pa->variable != pb->variable)
    return pa->variable < pb->variable;
  return a->key < b->key;
}

double integer_power(double x, std::int64_t n) {
  double result = 1, base = x;
  for (std::uint64_t k = static_cast<std::uint64_t>(std::abs(n)); k > 0; k >>= 1) {
    if (k & 1) result *= base;
    base *= base;
  }
  return n < 0 ? 1 / result : result;
}

template <class Visit>
void walk(const Expr& e, const Visit& visit) {
  visit(*e);
  for (const Expr& a : e->args) walk(a, visit);
}

Expr replace_constants(const Expr& e, std::span<const Constant> values, std::size_t& next) {
  if (e->op == Op::number) return e->number.exact ? e : number(values[next++]);
  std::vector<Expr> args;
  for (const Expr& a : e->args) args.push_back(replace_constants(a, values, next));
  return args.empty() ? e : with_args(*e, std::move(args));
}

}  // namespace

Expr with_args(const Node& n, std::vector<Expr> args) {
  switch (n.op) {
    case Op::number:
      return number(n.number);
    case Op::variable:
      return variable(n.variable);
    case Op::add:
      return add(std::move(args));
    case Op::multiply:
      return multiply(std::move(args));
    case Op::power:
      return power(args.front(), n.exponent);
    case Op::call:
      return call(n.function, args.front());
  }
  throw_invalid("an operation that does not exist");
}

double raise(double x, Rational exponent) {
  if (exponent.integer()) return integer_power(x, exponent.p);
  if (exponent.q == 2) return integer_power(std::sqrt(x), exponent.p);
  if (exponent.q == 3 && x > 0) return integer_power(std::cbrt(x), exponent.p);
  return std::pow(x, exponent.value());
}

double apply(Function f, double x) {
  switch (f) {
    case Function::exp:
      return std::exp(x);
    case Function::log:
      return std::log(x);
    case Function::sin:
      return std::sin(x);
    case Function::cos:
      return std::cos(x);
    case Function::tan:
      return std::tan(x);
    case Function::asin:
      return std::asin(x);
    case Function::acos:
      return std::acos(x);
    case Function::atan:
      return std::atan(x);
    case Function::sinh:
      return std::sinh(x);
    case Function::cosh:
      return std::cosh(x);
    case Function::tanh:
      return std::tanh(x);
    case Function::asinh:
      return std::asinh(x);
    case Function::acosh:
      return std::acosh(x);
    case Function::atanh:
      return std::atanh(x);
    case Function::abs:
      return std::abs(x);
    case Function::erf:
      return std::erf(x);
  }
  throw_invalid("a function that does not exist");
}

Expr number(const Constant& c) {
  Node n;
  n.number = c;
  return make(std::move(n));
}

Expr number(std::int64_t value) { return number(Constant::of(value)); }

Expr approximate(double value) { return number(Constant::approximate(value)); }

Expr variable(std::size_t index) {
  Node n;
  n.op = Op::variable, n.variable = index;
  return make(std::move(n));
}

Expr add(std::vector<Expr> terms) {
  Constant constant = Constant::of(0);
  std::vector<std::pair<Constant, Expr>> collected;
  std::map<std::string, std::size_t> place;
  const auto take = [&](const Expr& t, const auto& self) -> void {
    if (t->op == Op::add) {
      for (const Expr& a : t->args) self(a, self);
      return;
    }
    const auto [c, rest] = split_coefficient(t);
    if (!rest) {
      constant = constant + c;
      return;
    }
    const auto [at, fresh] = place.try_emplace(rest->key, collected.size());
    if (fresh)
      collected.emplace_back(c, rest);
    else
      collected[at->second].first = collected[at->second].first + c;
  };
  for (const Expr& t : terms) take(t, take);
  Node sum;
  sum.op = Op::add;
  for (const auto& [c, rest] : collected)
    if (c.value != 0) sum.args.push_back(c.is(1) ? rest : multiply({number(c), rest}));
  std::sort(sum.args.begin(), sum.args.end(), before);
  if (constant.value != 0) sum.args.insert(sum.args.begin(), number(constant));
  if (sum.args.empty()) return number(0);
  return sum.args.size() == 1 ? sum.args.front() : make(std::move(sum));
}

Expr multiply(std::vector<Expr> factors) {
  Constant constant = Constant::of(1);
  std::vector<std::pair<Expr, Rational>> collected;
  std::vector<Expr> exponents;  // of e
  std::map<std::string, std::size_t> place;
  const auto take = [&](const Expr& f, const auto& self) -> void {
    if (f->op == Op::call && f->function == Function::exp) {
      exponents.push_back(f->args[0]);
    } else if (f->op == Op::multiply) {
      for (const Expr& a : f->args) self(a, self);
    } else if (f->op == Op::number) {
      constant = constant * f->number;
    } else {
      const auto [base, exponent] = split_power(f);
      const auto [at, fresh] = place.try_emplace(base->key, collected.size());
      if (fresh)
        collected.emplace_back(base, exponent);
      else
        collected[at->second].second = collected[at->second].second + exponent;
    }
  };
  for (const Expr& f : factors) take(f, take);
  if (constant.value == 0) return number(0);
  Node product;
  product.op = Op::multiply;
  bool settled = true;  // a base with its exponent may be a product, a number or another base: sqrt(x y)^2 is x y
  for (const auto& [base, exponent] : collected) {
    if (exponent.p == 0) continue;
    const Expr f = power(base, exponent);
    const auto [other, raised] = split_power(f);
    settled = settled && f->op != Op::multiply && f->op != Op::number && other->key == base->key && raised == exponent;
    product.args.push_back(f);
  }
  if (!settled) {
    product.args.push_back(number(constant));
    for (const Expr& e : exponents) product.args.push_back(call(Function::exp, e));
    return multiply(std::move(product.args));
  }
  if (!exponents.empty()) {
    const Expr e = call(Function::exp, exponents.size() == 1 ? exponents.front() : add(std::move(exponents)));
    if (e->op == Op::number)
      constant = constant * e->number;
    else if (e->op == Op::call && e->function == Function::exp)
      product.args.push_back(e);
    else
      return multiply({number(constant), multiply(std::move(product.args)), e});  // exp(log(x)) is x
  }
  std::sort(product.args.begin(), product.args.end(), before);
  if (product.args.empty()) return number(constant);
  // A number times a sum, and nothing else, is the sum of its products.
  if (product.args.size() == 1 && product.args.front()->op == Op::add && !constant.is(1)) {
    std::vector<Expr> terms;
    for (const Expr& t : product.args.front()->args) terms.push_back(multiply({number(constant), t}));
    return add(std::move(terms));
  }
  if (!constant.is(1)) product.args.insert(product.args.begin(), number(constant));
  return product.args.size() == 1 ? product.args.front() : make(std::move(product));
}

Expr power(const Expr& base, Rational exponent) {
  if (exponent.p == 0) return number(1);
  if (exponent == Rational{1, 1}) return base;
  if (base->op == Op::number) {
    const Constant c = power(base->number, exponent);
    if (c.exact || !base->number.exact) return number(c);
  }
  // An odd power is positive where its base is, a root is never negative.
  const auto plain = [](Rational r) { return r.q % 2 == 0 || (r.integer() && r.p % 2 != 0); };
  if (base->op == Op::power && (exponent.integer() || plain(base->exponent)))
    return power(base->args[0], base->exponent * exponent);
  if (base->op == Op::multiply && exponent.integer()) {
    std::vector<Expr> factors;
    for (const Expr& f : base->args) factors.push_back(power(f, exponent));
    return multiply(std::move(factors));
  }
  if (base->op == Op::call && base->function == Function::exp)
    return call(Function::exp, number(Constant::of(exponent)) * base->args[0]);
  Node n;
  n.op = Op::power, n.exponent = exponent, n.args = {base};
  return make(std::move(n));
}

Expr call(Function f, const Expr& argument) {
  if (is_number(argument, 0)) {
    if (f == Function::exp || f == Function::cos || f == Function::cosh) return number(1);
    if (f == Function::sin || f == Function::tan || f == Function::tanh || f == Function::atan) return number(0);
  }
  if (argument->op == Op::call && ((f == Function::exp && argument->function == Function::log) ||
                                   (f == Function::log && argument->function == Function::exp)))
    return argument->args[0];
  if (argument->op == Op::number && !argument->number.exact)
    return number(Constant::approximate(apply(f, argument->number.value)));
  Node n;
  n.op = Op::call, n.function = f, n.args = {argument};
  return make(std::move(n));
}

std::vector<double> evaluate(const Expr& e, const Columns& columns, std::size_t rows) {
  switch (e->op) {
    case Op::number:
      return std::vector<double>(rows, e->number.value);
    case Op::variable:
      return columns.at(e->variable);
    case Op::add:
    case Op::multiply: {
      std::vector<double> result = evaluate(e->args[0], columns, rows);
      for (std::size_t a = 1; a < e->args.size(); ++a) {
        const std::vector<double> other = evaluate(e->args[a], columns, rows);
        for (std::size_t i = 0; i < rows; ++i)
          result[i] = e->op == Op::add ? result[i] + other[i] : result[i] * other[i];
      }
      return result;
    }
    case Op::power: {
      std::vector<double> result = evaluate(e->args[0], columns, rows);
      for (double& v : result) v = raise(v, e->exponent);
      return result;
    }
    case Op::call: {
      std::vector<double> result = evaluate(e->args[0], columns, rows);
      for (double& v : result) v = apply(e->function, v);
      return result;
    }
  }
  throw_invalid("an operation that does not exist");
}

std::size_t complexity(const Expr& e) {
  std::size_t count = 0;
  walk(e, [&](const Node& n) {
    count += n.op == Op::power ? 2 : 1;
    if (n.op == Op::add || n.op == Op::multiply) count += n.args.size() - 2;
    if (n.op == Op::number && !n.number.exact) ++count;
  });
  return count;
}

std::size_t inexact_constants(const Expr& e) { return constants_of(e).size(); }

std::vector<bool> variables_used(const Expr& e, std::size_t variables) {
  std::vector<bool> used(variables, false);
  walk(e, [&](const Node& n) {
    if (n.op == Op::variable) used.at(n.variable) = true;
  });
  return used;
}

std::vector<double> constants_of(const Expr& e) {
  std::vector<double> values;
  walk(e, [&](const Node& n) {
    if (n.op == Op::number && !n.number.exact) values.push_back(n.number.value);
  });
  return values;
}

Expr with_constants(const Expr& e, std::span<const Constant> values) {
  std::size_t next = 0;
  return replace_constants(e, values, next);
}

Expr substitute(const Expr& e, std::span<const Expr> replacements) {
  if (e->op == Op::variable) return replacements[e->variable];
  if (e->args.empty()) return e;
  std::vector<Expr> args;
  for (const Expr& a : e->args) args.push_back(substitute(a, replacements));
  return with_args(*e, std::move(args));
}

}  // namespace gradloom::formula
