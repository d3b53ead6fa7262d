#include "gradloom/formula/refine.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

#include "gradloom/formula/domain.h"
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

// Values of an expression, and their derivatives by a block of its inexact constants, in the order of constants_of().
struct Slopes {
  using Array = Eigen::ArrayXd;
  Array value;
  std::vector<std::pair<std::size_t, Array>> by;
};

// Constants first .. last - 1, which an expression is differentiated by.
struct Block {
  std::size_t first = 0, last = 0;
  std::size_t size() const { return last - first; }
};

class Differentiated {
 public:
  Differentiated(const std::vector<double>& constants, const Columns& x, std::size_t rows, Block by)
      : constants_(constants), x_(x), rows_(static_cast<Eigen::Index>(rows)), by_(by) {}

  Slopes at(const Expr& e) {
    switch (e->op) {
      case Op::number: {
        if (e->number.exact) return {Slopes::Array::Constant(rows_, e->number.value), {}};
        Slopes s{Slopes::Array::Constant(rows_, constants_[next_]), {}};
        if (next_ >= by_.first && next_ < by_.last) s.by.emplace_back(next_ - by_.first, Slopes::Array::Ones(rows_));
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
          if (by_.size() > 0) slope = e->exponent.value() * raise(v, e->exponent + Rational{-1, 1});
          return y;
        });
      case Op::call:
        return chained(at(e->args[0]), [&](double v, double& slope) {
          const double y = apply(e->function, v);
          if (by_.size() > 0) slope = slope_of(e->function, v, y);
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
  Block by_;
  std::size_t next_ = 0;
};

double square_error(const std::vector<double>& a, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += (a[i] - y[i]) * (a[i] - y[i]);
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
}

// Constants on their way to the least squares.
class Refinement {
 public:
  Refinement(const Expr& e, const Columns& x, const std::vector<double>& y, const RefineOptions& options)
      : e_(e), x_(x), y_(y), o_(options), c_(constants_of(e)) {
    if (c_.empty()) return;
    size_ = o_.work ? static_cast<double>(complexity(e)) : 0;
    f_ = value(c_), error_ = square_error(f_, y);
  }

  std::size_t constants() const { return c_.size(); }
  double error() const { return error_; }  // sum of squares
  Expr expression() const { return with_constants(e_, inexact(c_)); }

  // One step of some of the constants; whether it made the error smaller.
  bool step(Block block, double& damping) {
    const auto rows = static_cast<Eigen::Index>(y_.size()), count = static_cast<Eigen::Index>(block.size());
    Matrix jacobian = Matrix::Zero(rows, count);
    for (const auto& [k, slope] : Differentiated(c_, x_, y_.size(), block).at(e_).by)
      jacobian.col(static_cast<Eigen::Index>(k)) = slope.matrix();
    if (!jacobian.allFinite()) return false;
    Vector residual(rows);
    for (Eigen::Index r = 0; r < rows; ++r)
      residual[r] = y_[static_cast<std::size_t>(r)] - f_[static_cast<std::size_t>(r)];
    const Vector norms = jacobian.colwise().norm().transpose().cwiseMax(1e-300);
    for (int attempt = 0; attempt < 6; ++attempt) {
      spend(block.size());
      Matrix stacked(rows + count, count);
      stacked << jacobian * norms.cwiseInverse().asDiagonal(), std::sqrt(damping) * Matrix::Identity(count, count);
      Vector right = Vector::Zero(rows + count);
      right.head(rows) = residual;
      const Vector change = stacked.colPivHouseholderQr().solve(right).cwiseQuotient(norms);
      std::vector<double> next = c_;
      for (Eigen::Index k = 0; k < count; ++k) next[block.first + static_cast<std::size_t>(k)] += change[k];
      std::vector<double> g = value(next);
      const double next_error = square_error(g, y_);
      if (next_error < error_ && is_defined(next)) {
        c_ = std::move(next), f_ = std::move(g), error_ = next_error, damping *= 0.1;
        return true;
      }
      damping = std::max(10 * damping, 1e-4);
    }
    return false;
  }

 private:
  std::vector<double> value(const std::vector<double>& at) {
    spend(0);
    const Slopes s = Differentiated(at, x_, y_.size(), {}).at(e_);
    return {s.value.begin(), s.value.end()};
  }

  bool is_defined(const std::vector<double>& at) const {
    if (!o_.defined || o_.defined->empty()) return true;
    return defined_on(with_constants(e_, inexact(at)), *o_.defined, o_.defined->front().size());
  }

  // Values, or a step in so many constants. A function costs about as much as ten multiplications.
  void spend(std::size_t derivatives) const {
    if (!o_.work) return;
    const double by = static_cast<double>(derivatives);
    o_.work->spend(1e-6 * static_cast<double>(y_.size()) * (10 * size_ + 10 * by + 2 * by * by));
  }

  const Expr& e_;
  const Columns& x_;
  const std::vector<double>& y_;
  const RefineOptions& o_;
  std::vector<double> c_, f_;
  double size_ = 0, error_ = 0;
};

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

Expr refine_constants(const Expr& e, const Columns& x, const std::vector<double>& y, const RefineOptions& o) {
  Refinement fit(e, x, y, o);
  if (fit.constants() == 0) return e;
  const std::size_t blocks = (fit.constants() + o.block - 1) / o.block;
  std::vector<double> damping(blocks, 0.0);
  for (int i = 0; i < o.iterations && fit.error() > 0; ++i) {
    const double before = fit.error();
    bool better = false;
    for (std::size_t b = 0; b < blocks; ++b) {
      if (o.work && o.work->exhausted()) return fit.expression();
      const Block block{b * fit.constants() / blocks, (b + 1) * fit.constants() / blocks};
      better |= fit.step(block, damping[b]);
    }
    if (!better || fit.error() > 0.999999 * before) break;
  }
  return fit.expression();
}

Expr snap_constants(const Expr& e, const Columns& x, const std::vector<double>& y, double allowed, double tolerance) {
  Expr best = e;
  for (std::size_t i = 0; i < inexact_constants(best);) {
    const std::vector<double> values = constants_of(best);
    std::vector<Constant> c = inexact(values);
    c[i] = std::abs(values[i]) < 1e-9 ? Constant::of(0) : snap(values[i], {.tolerance = tolerance});
    if (c[i].exact) {
      const Expr snapped = refine_constants(with_constants(best, c), x, y, {.iterations = 3});
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
