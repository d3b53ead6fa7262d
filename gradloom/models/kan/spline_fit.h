// Splines on one knot vector: evaluation, exact change of basis between nested grids, and least squares. In double.
#pragma once

#include <span>
#include <vector>

namespace gradloom::kan {

// The interior knots lo = t_0 < ... < t_G = hi of one input, continued outwards by p knots with the edge's spacing.
class KnotLine {
 public:
  // `interior` has G + 1 increasing values, G >= 1.
  KnotLine(unsigned degree, std::vector<double> interior);
  static KnotLine uniform(unsigned degree, unsigned grid, double lo, double hi);

  unsigned degree() const { return degree_; }
  std::size_t grid() const { return interior_.size() - 1; }
  std::size_t functions() const { return grid() + degree_; }
  std::span<const double> interior() const { return interior_; }
  double lo() const { return interior_.front(); }
  double hi() const { return interior_.back(); }
  // Knot k - p of the continued line, k = 0..G+2p; B_m has its support on [knot(m), knot(m+p+1)].
  double knot(std::size_t k) const { return extended_[k]; }

  std::size_t span_of(double x) const;  // 0..G-1; outside points belong to the edge's interval
  // The p + 1 functions of interval `span` at x (which may lie outside it), values from index 0.
  void basis(std::size_t span, double x, double* values) const;

 private:
  unsigned degree_;
  std::vector<double> interior_, extended_;
};

// Is every interior knot of `coarse` one of `fine`, over the same range (up to rounding)?
bool nested(const KnotLine& coarse, const KnotLine& fine);

// Coefficients on `fine` of the spline with the given coefficients on `coarse`; exact up to rounding when nested.
// `coarse` and `fine` are (functions, columns) row-major.
void refine_nested(const KnotLine& from, std::span<const double> coarse, const KnotLine& to, std::size_t columns,
                   std::span<double> fine);

enum class FitGoal {
  reproduce,  // as close to the values as the arithmetic allows
  smooth,     // where points are few or far between, prefer the smoother spline
};

// Least squares: coefficients on `line` (functions, columns) that fit values (points, columns) at x (points). A ridge
// on differences of order p + 1 of neighbouring coefficients decides where points do not: such stretches continue or
// bridge the others like a polynomial of degree p. All results are finite when the input is.
void fit_least_squares(const KnotLine& line, std::span<const double> x, std::span<const double> values,
                       std::size_t columns, FitGoal goal, std::span<double> coefficients);

}  // namespace gradloom::kan
