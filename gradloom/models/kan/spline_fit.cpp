#include "gradloom/models/kan/spline_fit.h"

#include <Eigen/SparseCholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace gradloom::kan {

namespace {

// Relative to the mean of the normal equations' diagonal. On a smooth function differences of order p + 1 are so small
// that even the larger ridge moves well-determined coefficients less than rounding does.
constexpr double kRidgeToReproduce = 1e-13, kRidgeToSmooth = 1e-8;
constexpr double kShrink = 1e-6;      // of the ridge, on the coefficients themselves: no direction is left undetermined
constexpr int kMostRounds = 16;       // the first solution and residual corrections
constexpr double kConverged = 1e-15;  // a correction this small, relative to the solution, was the last one
constexpr double kSameKnot = 1e-9;    // relative to the range

}  // namespace

KnotLine::KnotLine(unsigned degree, std::vector<double> interior) : degree_(degree), interior_(std::move(interior)) {
  const std::size_t g = grid(), p = degree_;
  extended_.resize(g + 2 * p + 1);
  const double first = interior_[1] - interior_[0], last = interior_[g] - interior_[g - 1];
  for (std::size_t k = 0; k < extended_.size(); ++k) {
    if (k < p)
      extended_[k] = lo() - first * static_cast<double>(p - k);
    else if (k <= p + g)
      extended_[k] = interior_[k - p];
    else
      extended_[k] = hi() + last * static_cast<double>(k - p - g);
  }
}

KnotLine KnotLine::uniform(unsigned degree, unsigned grid, double lo, double hi) {
  std::vector<double> interior(grid + 1);
  for (unsigned k = 0; k <= grid; ++k) interior[k] = k == grid ? hi : lo + (hi - lo) * k / grid;
  return KnotLine(degree, std::move(interior));
}

std::size_t KnotLine::span_of(double x) const {
  const auto above = std::upper_bound(interior_.begin(), interior_.end(), x) - interior_.begin();
  return static_cast<std::size_t>(std::clamp<long>(above - 1, 0, static_cast<long>(grid()) - 1));
}

void KnotLine::basis(std::size_t span, double x, double* n) const {
  const std::size_t left = span + degree_;
  n[0] = 1.0;
  for (std::size_t d = 1; d <= degree_; ++d) {
    double saved = 0.0;
    for (std::size_t r = 0; r < d; ++r) {
      const double right_knot = extended_[left + 1 + r], left_knot = extended_[left + 1 + r - d];
      const double share = n[r] / (right_knot - left_knot);
      n[r] = saved + (right_knot - x) * share;
      saved = (x - left_knot) * share;
    }
    n[d] = saved;
  }
}

bool nested(const KnotLine& coarse, const KnotLine& fine) {
  const double tolerance = kSameKnot * (coarse.hi() - coarse.lo());
  if (coarse.degree() != fine.degree()) return false;
  if (std::abs(coarse.lo() - fine.lo()) > tolerance || std::abs(coarse.hi() - fine.hi()) > tolerance) return false;
  for (double knot : coarse.interior()) {
    const auto at = std::lower_bound(fine.interior().begin(), fine.interior().end(), knot - tolerance);
    if (at == fine.interior().end() || *at > knot + tolerance) return false;
  }
  return true;
}

// A new coefficient is the polar form (blossom) of the old polynomial piece, at the p knots inside the new function's
// support. De Boor's triangle evaluates it, with another argument at each level.
void refine_nested(const KnotLine& from, std::span<const double> coarse, const KnotLine& to, std::size_t columns,
                   std::span<double> fine) {
  const std::size_t p = from.degree();
  std::vector<double> triangle((p + 1) * columns);
  for (std::size_t k = 0; k < to.functions(); ++k) {
    // Any interval of the new grid inside the support will do; its middle tells which old piece that is.
    const std::size_t interval = std::min(k > p / 2 ? k - p / 2 : 0, to.grid() - 1);
    const double middle = 0.5 * (to.interior()[interval] + to.interior()[interval + 1]);
    const std::size_t span = from.span_of(middle), left = span + p;
    std::copy_n(coarse.begin() + static_cast<std::ptrdiff_t>(span * columns), (p + 1) * columns, triangle.begin());
    for (std::size_t level = 1; level <= p; ++level) {
      const double u = to.knot(k + level);
      for (std::size_t i = p; i >= level; --i) {
        const double low = from.knot(left - p + i), high = from.knot(left + 1 + i - level);
        const double share = (u - low) / (high - low);
        for (std::size_t c = 0; c < columns; ++c)
          triangle[i * columns + c] =
              (1.0 - share) * triangle[(i - 1) * columns + c] + share * triangle[i * columns + c];
      }
    }
    std::copy_n(triangle.begin() + static_cast<std::ptrdiff_t>(p * columns), columns,
                fine.begin() + static_cast<std::ptrdiff_t>(k * columns));
  }
}

void fit_least_squares(const KnotLine& line, std::span<const double> x, std::span<const double> values,
                       std::size_t columns, FitGoal goal, std::span<double> coefficients) {
  const auto n = static_cast<Eigen::Index>(line.functions());
  const std::size_t p = line.degree(), order = p + 1;
  std::vector<std::size_t> spans(x.size());
  std::vector<double> basis(x.size() * order);
  std::vector<double> band(line.functions() * order, 0.0);  // band[m][d] = (A^T A)(m, m + d)
  for (std::size_t s = 0; s < x.size(); ++s) {
    spans[s] = line.span_of(x[s]);
    double* b = basis.data() + s * order;
    line.basis(spans[s], x[s], b);
    for (std::size_t k = 0; k <= p; ++k)
      for (std::size_t l = k; l <= p; ++l) band[(spans[s] + k) * order + (l - k)] += b[k] * b[l];
  }
  double trace = 0.0;
  for (std::size_t m = 0; m < line.functions(); ++m) trace += band[m * order];
  const double ridge =
      (goal == FitGoal::smooth ? kRidgeToSmooth : kRidgeToReproduce) * std::max(trace / static_cast<double>(n), 1e-3);

  std::vector<Eigen::Triplet<double>> entries;
  for (std::size_t m = 0; m < line.functions(); ++m)
    for (std::size_t d = 0; d <= p && m + d < line.functions(); ++d)
      entries.emplace_back(static_cast<int>(m + d), static_cast<int>(m), band[m * order + d]);
  // Squared differences of order p + 1 (or as many as there are coefficients for).
  const std::size_t differences = std::min(order, line.functions() - 1);
  std::vector<double> binomial(differences + 1, 1.0);
  for (std::size_t d = 1; d <= differences; ++d)
    binomial[d] = -binomial[d - 1] * static_cast<double>(differences - d + 1) / static_cast<double>(d);
  // A weak direction of the normal equations oscillates from one coefficient to the next, and differences of order p +
  // 1 amplify such by 2^(p+1). Without dividing that out, the ridge of degree 7 outweighs them, and no correction gets
  // through.
  double squares = 1.0;
  if (goal == FitGoal::reproduce) squares = std::inner_product(binomial.begin(), binomial.end(), binomial.begin(), 0.0);
  for (std::size_t m = 0; m + differences < line.functions(); ++m)
    for (std::size_t a = 0; a <= differences; ++a)
      for (std::size_t b = 0; b <= a; ++b)
        entries.emplace_back(static_cast<int>(m + a), static_cast<int>(m + b),
                             ridge / squares * binomial[a] * binomial[b]);
  for (int m = 0; m < n; ++m) entries.emplace_back(m, m, ridge * kShrink);
  Eigen::SparseMatrix<double> normal(n, n);
  normal.setFromTriplets(entries.begin(), entries.end());
  const Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>, Eigen::Lower, Eigen::NaturalOrdering<int>> solver(normal);

  Eigen::MatrixXd solution = Eigen::MatrixXd::Zero(n, static_cast<Eigen::Index>(columns));
  Eigen::MatrixXd right(n, static_cast<Eigen::Index>(columns));
  // Each round solves for the residual of the last one. With condition number k of the basis, a round shrinks the error
  // by about ridge + epsilon times k^2; that wins back what squaring the condition number lost.
  const int rounds = goal == FitGoal::reproduce ? kMostRounds : 1;
  for (int round = 0; round < rounds; ++round) {
    right.setZero();
    for (std::size_t s = 0; s < x.size(); ++s) {
      const double* b = basis.data() + s * order;
      for (std::size_t c = 0; c < columns; ++c) {
        double residual = values[s * columns + c];
        for (std::size_t k = 0; k <= p; ++k)
          residual -= b[k] * solution(static_cast<Eigen::Index>(spans[s] + k), static_cast<Eigen::Index>(c));
        for (std::size_t k = 0; k <= p; ++k)
          right(static_cast<Eigen::Index>(spans[s] + k), static_cast<Eigen::Index>(c)) += b[k] * residual;
      }
    }
    const Eigen::MatrixXd correction = solver.solve(right);
    if (!correction.allFinite()) break;
    solution += correction;
    if (correction.cwiseAbs().maxCoeff() <= kConverged * solution.cwiseAbs().maxCoeff()) break;
  }
  for (Eigen::Index m = 0; m < n; ++m)
    for (std::size_t c = 0; c < columns; ++c)
      coefficients[static_cast<std::size_t>(m) * columns + c] = solution(m, static_cast<Eigen::Index>(c));
}

}  // namespace gradloom::kan
