#include "gradloom/formula/refine.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>

#include "gradloom/formula/relation.h"

namespace gradloom::formula {
namespace {

std::vector<Constant> inexact(const std::vector<double>& values) {
  std::vector<Constant> c;
  for (const double v : values) c.push_back(Constant::approximate(v));
  return c;
}

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
    return evaluate(with_constants(e, inexact(at)), x, y.size());
  };
  std::vector<double> f = value(c);
  double error = square_error(f, y), damping = 0;
  for (int i = 0; i < iterations && error > 0; ++i) {
    Matrix jacobian(rows, count);
    for (Eigen::Index k = 0; k < count; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const double h = 1e-6 * std::max(std::abs(c[at]), 1e-8);
      std::vector<double> up = c, down = c;
      up[at] += h, down[at] -= h;
      const std::vector<double> a = value(up), b = value(down);
      for (Eigen::Index r = 0; r < rows; ++r)
        jacobian(r, k) = (a[static_cast<std::size_t>(r)] - b[static_cast<std::size_t>(r)]) / (2 * h);
    }
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
