#include "gradloom/formula/alphabet.h"

#include <cmath>
#include <numbers>

#include "gradloom/base/error.h"

namespace gradloom::formula {

bool fits(Alphabet alphabet, const Vector& values) {
  switch (alphabet) {
    case Alphabet::log:
    case Alphabet::root:
    case Alphabet::log_only:
    case Alphabet::root_only:
      return values.minCoeff() > 0;
    case Alphabet::exp:
    case Alphabet::exp_only:
      return values.cwiseAbs().maxCoeff() < 300;
    case Alphabet::poly:
    case Alphabet::trig:
    case Alphabet::trig_only:
      return true;
  }
  return false;
}

std::vector<Atom> atoms(const Variable& variable, Alphabet alphabet, int complexity) {
  const Vector& x = variable.values;
  const Expr& t = variable.text;
  const auto f = [&](Function g) { return Vector(x.unaryExpr([g](double v) { return apply(g, v); })); };
  std::vector<Atom> list{{0, {}, number(1)}};
  const auto put = [&](int c, Vector v, Expr e) {
    if (c <= complexity) list.push_back({c, std::move(v), std::move(e)});
  };
  switch (alphabet) {
    case Alphabet::poly: {
      Vector power = x;
      for (int d = 1; d <= complexity; ++d, power = power.cwiseProduct(x)) put(d, power, formula::power(t, {d, 1}));
      break;
    }
    case Alphabet::root:
    case Alphabet::root_only: {
      const Vector root = x.cwiseSqrt();
      Vector power = root;
      const int last = alphabet == Alphabet::root ? complexity : 1;
      for (int d = 1; d <= last; ++d, power = power.cwiseProduct(root))
        put(d, power, formula::power(t, Rational::of(d, 2)));
      break;
    }
    case Alphabet::trig:
    case Alphabet::trig_only: {
      const Vector c = f(Function::cos), s = f(Function::sin);
      const Expr ce = call(Function::cos, t), se = call(Function::sin, t);
      put(1, c, ce), put(1, s, se);
      if (alphabet == Alphabet::trig) put(1, x, t);
      put(2, c.cwiseProduct(c), ce * ce), put(2, c.cwiseProduct(s), ce * se);
      if (alphabet == Alphabet::trig) put(2, x.cwiseProduct(x), t * t);
      break;
    }
    case Alphabet::exp:
      put(1, x, t);
      put(1, f(Function::exp), call(Function::exp, t));
      put(1, f(Function::exp).cwiseInverse(), call(Function::exp, -t));
      put(2, x.cwiseProduct(x), t * t);
      break;
    case Alphabet::exp_only:
      put(1, f(Function::exp), call(Function::exp, t));
      put(1, f(Function::exp).cwiseInverse(), call(Function::exp, -t));
      break;
    case Alphabet::log: {
      const Vector l = f(Function::log);
      const Expr le = call(Function::log, t);
      put(1, x, t), put(1, l, le), put(2, x.cwiseProduct(x), t * t), put(2, x.cwiseProduct(l), t * le);
      break;
    }
    case Alphabet::log_only:
      put(1, f(Function::log), call(Function::log, t));
      break;
  }
  return list;
}

std::vector<Product> products(const std::vector<std::vector<Atom>>& lists, int complexity) {
  std::vector<Product> all{{}};
  for (const std::vector<Atom>& list : lists) {
    std::vector<Product> longer;
    for (const Product& p : all)
      for (const Atom& atom : list) {
        if (p.complexity + atom.complexity > complexity) continue;
        Product q = p;
        q.complexity += atom.complexity;
        if (atom.values.size() > 0) q.factors.push_back(&atom);
        longer.push_back(std::move(q));
      }
    all = std::move(longer);
  }
  return all;
}

Vector values_of(const Product& product, Eigen::Index rows) {
  if (product.factors.empty()) return Vector::Ones(rows);
  Vector v = product.factors.front()->values;
  for (std::size_t i = 1; i < product.factors.size(); ++i) v.array() *= product.factors[i]->values.array();
  return v;
}

Expr text_of(const Product& product) {
  std::vector<Expr> factors;
  for (const Atom* atom : product.factors) factors.push_back(atom->text);
  return multiply(std::move(factors));
}

Vector outer_values(Outer::Kind kind, const Vector& y) {
  const auto f = [&](auto g) {
    Vector v = y.unaryExpr(g);
    return v.allFinite() ? v : Vector();
  };
  const double low = y.minCoeff(), high = y.maxCoeff(), size = y.cwiseAbs().maxCoeff();
  constexpr double kHalf = std::numbers::pi / 2;
  switch (kind) {
    case Outer::identity:
      return y;
    case Outer::square:
      return low >= 0 || high <= 0 ? f([](double v) { return v * v; }) : Vector();
    case Outer::log:
      return low > 0 || high < 0 ? f([](double v) { return std::log(std::abs(v)); }) : Vector();
    case Outer::exp:
      return size < 30 ? f([](double v) { return std::exp(v); }) : Vector();
    case Outer::sin:
      return size <= kHalf ? f([](double v) { return std::sin(v); }) : Vector();
    case Outer::cos:
      return low >= 0 && high <= 2 * kHalf ? f([](double v) { return std::cos(v); }) : Vector();
    case Outer::tan:
      return size < kHalf ? f([](double v) { return std::tan(v); }) : Vector();
    case Outer::atanh:
      return size < 1 ? f([](double v) { return std::atanh(v); }) : Vector();
  }
  return {};
}

Expr outer_inverse(Outer::Kind kind, const Expr& g, bool negative) {
  switch (kind) {
    case Outer::identity:
      return g;
    case Outer::square:
      return negative ? -sqrt(g) : sqrt(g);
    case Outer::log:
      return negative ? -call(Function::exp, g) : call(Function::exp, g);
    case Outer::exp:
      return call(Function::log, g);
    case Outer::sin:
      return call(Function::asin, g);
    case Outer::cos:
      return call(Function::acos, g);
    case Outer::tan:
      return call(Function::atan, g);
    case Outer::atanh:
      return call(Function::tanh, g);
  }
  throw_invalid("an outer function that does not exist");
}

}  // namespace gradloom::formula
