#include "gradloom/formula/refine.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

#include "gradloom/formula/relation.h"

namespace gradloom::formula {
namespace {

std::vector<Constant> inexact(const std::vector<double>& values) {
  std::vector<Constant> c;
  for (const double v : values) c.push_back(Constant::approximate(v));
  return c;
}

// d apply(f, x) / dx, where y = apply(f, x).
double slope_of(Function f, double x, double y) {
  switch (f) {
    case Function::exp:
      return y;
    case Function::log:
      return 1 / x;
    case Function::sin:
      return std::cos(x);
    case Function::cos:
      return -std::sin(x);
    case Function::tan:
      return 1 + y * y;
    case Function::asin:
      return 1 / std::sqrt(1 - x * x);
    case Function::acos:
      return -1 / std::sqrt(1 - x * x);
    case Function::atan:
      return 1 / (1 + x * x);
    case Function::sinh:
      return std::cosh(x);
    case Function::cosh:
      return std::sinh(x);
    case Function::tanh:
      return 1 - y * y;
    case Function::asinh:
      return 1 / std::sqrt(1 + x * x);
    case Function::acosh:
      return 1 / std::sqrt(x * x - 1);
    case Function::atanh:
      return 1 / (1 - x * x);
    case Function::abs:
      return x < 0 ? -1 : 1;
    case Function::erf:
      return 2 / std::sqrt(std::numbers::pi) * std::exp(-x * x);
  }
  throw_invalid("a function that does not exist");
}

// Values of an expression, and their derivatives by some of its inexact constants, in the order of constants_of().
struct Slopes {
  using Array = Eigen::ArrayXd;
  Array value;
  std::vector<std::pair<std::size_t, Array>> by;
};

class Differentiated {
 public:
  Differentiated(const std::vector<double>& constants, const Columns& x, std::size_t rows, bool slopes)
      : constants_(constants), x_(x), rows_(static_cast<Eigen::Index>(rows)), slopes_(slopes) {}

  Slopes at(const Expr& e) {
    switch (e->op) {
      case Op::number: {
        if (e->number.exact) return {Slopes::Array::Constant(rows_, e->number.value), {}};
        Slopes s{Slopes::Array::Constant(rows_, constants_[next_]), {}};
        if (slopes_) s.by.emplace_back(next_, Slopes::Array::Ones(rows_));
        ++next_;
        return s;
      }
      case Op::variable:
        return {Eigen::Map<const Slopes::Array>(x_.at(e->variable).data(), rows_), {}};
      case Op::add:
      case Op::multiply: {
        Slopes all = at(e->args[0]);
        for (std::size_t a = 1; a < e->args.size(); ++a) {
          Slopes other = at(e->args[a]);
          if (e->op == Op::multiply) {
            for (auto& [k, d] : all.by) d *= other.value;
            for (auto& [k, d] : other.by) d *= all.value;
            all.value *= other.value;
          } else {
            all.value += other.value;
          }
          std::move(other.by.begin(), other.by.end(), std::back_inserter(all.by));
        }
        return all;
      }
      case Op::power:
        return chained(at(e->args[0]), [&](double v, double& slope) {
          const double y = raise(v, e->exponent);
          if (slopes_) slope = e->exponent.value() * raise(v, e->exponent + Rational{-1, 1});
          return y;
        });
      case Op::call:
        return chained(at(e->args[0]), [&](double v, double& slope) {
          const double y = apply(e->function, v);
          if (slopes_) slope = slope_of(e->function, v, y);
          return y;
        });
    }
    throw_invalid("an operation that does not exist");
  }

 private:
  template <class F>
  Slopes chained(Slopes s, const F& f) const {
    Slopes::Array slope(s.by.empty() ? 0 : rows_);
    double unused = 0;
    for (Eigen::Index r = 0; r < rows_; ++r) s.value[r] = f(s.value[r], s.by.empty() ? unused : slope[r]);
    for (auto& [k, d] : s.by) d *= slope;
    return s;
  }

  const std::vector<double>& constants_;
  const Columns& x_;
  Eigen::Index rows_;
  bool slopes_;
  std::size_t next_ = 0;
};

double square_error(const std::vector<double>& a, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += (a[i] - y[i]) * (a[i] - y[i]);
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
}

}  // namespace

double largest_error(const Expr& e, const Columns& x, const std::vector<double>& y) {
  const std::vector<double> a = evaluate(e, x, y.size());
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double d = std::abs(a[i] - y[i]);
    if (!std::isfinite(d)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, d);
  }
  return worst;
}

double rms_error(const Expr& e, const Columns& x, const std::vector<double>& y) {
  return y.empty() ? 0 : std::sqrt(square_error(evaluate(e, x, y.size()), y) / static_cast<double>(y.size()));
}

Expr refine_constants(const Expr& e, const Columns& x, const std::vector<double>& y, int iterations) {
  std::vector<double> c = constants_of(e);
  if (c.empty()) return e;
  const auto rows = static_cast<Eigen::Index>(y.size()), count = static_cast<Eigen::Index>(c.size());
  const auto value = [&](const std::vector<double>& at) {
    const Slopes s = Differentiated(at, x, y.size(), false).at(e);
    return std::vector<double>(s.value.begin(), s.value.end());
  };
  std::vector<double> f = value(c);
  double error = square_error(f, y), damping = 0;
  for (int i = 0; i < iterations && error > 0; ++i) {
    Matrix jacobian = Matrix::Zero(rows, count);
    for (const auto& [k, slope] : Differentiated(c, x, y.size(), true).at(e).by)
      jacobian.col(static_cast<Eigen::Index>(k)) = slope.matrix();
    if (!jacobian.allFinite()) break;
    Vector residual(rows);
    for (Eigen::Index r = 0; r < rows; ++r)
      residual[r] = y[static_cast<std::size_t>(r)] - f[static_cast<std::size_t>(r)];
    const Vector norms = jacobian.colwise().norm().transpose().cwiseMax(1e-300);
    bool better = false;
    for (int attempt = 0; attempt < 6 && !better; ++attempt) {
      Matrix stacked(rows + count, count);
      stacked << jacobian * norms.cwiseInverse().asDiagonal(), std::sqrt(damping) * Matrix::Identity(count, count);
      Vector right = Vector::Zero(rows + count);
      right.head(rows) = residual;
      const Vector step = stacked.colPivHouseholderQr().solve(right).cwiseQuotient(norms);
      std::vector<double> next = c;
      for (Eigen::Index k = 0; k < count; ++k) next[static_cast<std::size_t>(k)] += step[k];
      const std::vector<double> g = value(next);
      const double next_error = square_error(g, y);
      if (next_error < error) {
        const bool enough = next_error > 0.999999 * error;
        better = true, c = next, f = g, error = next_error, damping *= 0.1;
        if (enough) i = iterations;
      } else {
        damping = std::max(10 * damping, 1e-4);
      }
    }
    if (!better) break;
  }
  return with_constants(e, inexact(c));
}

Expr snap_constants(const Expr& e, const Columns& x, const std::vector<double>& y, double allowed, double tolerance) {
  Expr best = e;
  for (std::size_t i = 0; i < inexact_constants(best);) {
    const std::vector<double> values = constants_of(best);
    std::vector<Constant> c = inexact(values);
    c[i] = std::abs(values[i]) < 1e-9 ? Constant::of(0) : snap(values[i], {.tolerance = tolerance});
    if (c[i].exact) {
      const Expr snapped = refine_constants(with_constants(best, c), x, y, 3);
      if (largest_error(snapped, x, y) <= allowed && inexact_constants(snapped) < inexact_constants(best)) {
        best = snapped;
        continue;
      }
    }
    ++i;
  }
  return best;
}

}  // namespace gradloom::formula
