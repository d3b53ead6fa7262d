#include "gradloom/formula/symmetry.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <set>

namespace gradloom::formula {
namespace {

using Row = std::vector<Rational>;

// The nearest k/1, k/2 or k/3 within the tolerance; simple denominators are preferred.
std::optional<Rational> small_fraction(double v, double tolerance) {
  double best = 1e300;
  Rational nearest;
  if (!(std::abs(v) < 100)) return std::nullopt;
  for (const std::int64_t q : {1, 2, 3}) {
    const Rational r = Rational::of(std::llround(v * static_cast<double>(q)), q);
    const double badness = std::abs(v - r.value()) + 1e-3 * static_cast<double>(q - 1);
    if (badness < best) best = badness, nearest = r;
  }
  if (!(std::abs(nearest.value() - v) < tolerance)) return std::nullopt;
  return nearest;
}

// The right singular vectors whose values are below tolerance * the largest, as rows.
Matrix null_space(const Matrix& m, double tolerance) {
  if (m.cols() == 0) return {};
  const Matrix r = Eigen::HouseholderQR<Matrix>(m).matrixQR().topRows(m.cols()).triangularView<Eigen::Upper>();
  const Eigen::JacobiSVD<Matrix> svd(r, Eigen::ComputeFullV);
  const Vector& s = svd.singularValues();
  Eigen::Index null = 0;
  for (Eigen::Index i = 0; i < s.size(); ++i)
    if (s[i] < tolerance * s[0]) ++null;
  return svd.matrixV().rightCols(null).transpose();
}

// Reduced row echelon form with full pivoting over the first `variables` columns, entries snapped; empty if they do
// not.
std::vector<Row> snapped_rows(Matrix n, Eigen::Index variables) {
  std::set<Eigen::Index> used;
  for (Eigen::Index row = 0; row < n.rows(); ++row) {
    Eigen::Index pi = row, pj = -1;
    double best = 1e-3;
    for (Eigen::Index i = row; i < n.rows(); ++i)
      for (Eigen::Index j = 0; j < variables; ++j)
        if (!used.contains(j) && std::abs(n(i, j)) > best) best = std::abs(n(i, j)), pi = i, pj = j;
    if (pj < 0) return {};
    n.row(row).swap(n.row(pi));
    n.row(row) /= Matrix(n)(row, pj);
    for (Eigen::Index i = 0; i < n.rows(); ++i)
      if (i != row) n.row(i) -= Matrix(n)(i, pj) * n.row(row);
    used.insert(pj);
  }
  std::vector<Row> rows;
  for (Eigen::Index i = 0; i < n.rows(); ++i) {
    Row row;
    for (Eigen::Index j = 0; j < n.cols(); ++j) {
      const auto r = small_fraction(n(i, j), 0.06);
      if (!r) return {};
      row.push_back(*r);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string text_key(Symmetry::Kind kind, const std::vector<Row>& a, const Row& k) {
  std::string key = std::to_string(kind);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (const Rational& r : a[i]) key += " " + std::to_string(r.p) + "/" + std::to_string(r.q);
    key += "=" + std::to_string(k[i].p) + "/" + std::to_string(k[i].q);
  }
  return key;
}

// Rows of the problem that lie well inside of the data, where a surrogate's gradients are best.
std::vector<Eigen::Index> core_rows(const Problem& p) {
  const Eigen::Index n = p.rows();
  Vector far = Vector::Zero(n);
  for (const Variable& v : p.variables) {
    Vector sorted = v.values;
    std::sort(sorted.begin(), sorted.end());
    const double range = sorted[n - 1] - sorted[0];
    if (range > 0) far = far.cwiseMax(((v.values.array() - sorted[n / 2]) / range).abs().matrix());
  }
  for (const double limit : {0.46, 0.49, 1e9}) {
    std::vector<Eigen::Index> rows;
    for (Eigen::Index i = 0; i < n; ++i)
      if (far[i] < limit) rows.push_back(i);
    if (rows.size() >= 100 || limit > 1) return rows;
  }
  return {};
}

double residual_of(const Matrix& c, const Vector& f, const Row& a, Rational k) {
  Vector sum = -k.value() * f, size = std::abs(k.value()) * f.cwiseAbs();
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i].value() * c.col(static_cast<Eigen::Index>(i));
    size += std::abs(a[i].value()) * c.col(static_cast<Eigen::Index>(i)).cwiseAbs();
  }
  return sum.norm() / (size.norm() + 1e-300);
}

// Solves A m = k exactly, free entries 0. None without a solution.
std::optional<Row> particular(std::vector<Row> a, const Row& k) {
  const std::size_t n = a.front().size();
  for (std::size_t i = 0; i < a.size(); ++i) a[i].push_back(k[i]);
  std::vector<std::size_t> pivots;
  for (std::size_t row = 0; row < a.size(); ++row) {
    std::size_t column = 0, from = row;
    for (; column < n; ++column) {
      for (from = row; from < a.size() && a[from][column].p == 0; ++from) {
      }
      if (from < a.size()) break;
    }
    if (column == n) {
      for (std::size_t i = row; i < a.size(); ++i)
        if (a[i][n].p != 0) return std::nullopt;
      break;
    }
    std::swap(a[row], a[from]);
    const Rational head = a[row][column];
    for (Rational& v : a[row]) v = v / head;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (i == row) continue;
      const Rational f = a[i][column];
      for (std::size_t j = 0; j <= n; ++j) a[i][j] = a[i][j] - f * a[row][j];
    }
    pivots.push_back(column);
  }
  Row m(n);
  for (std::size_t i = 0; i < pivots.size(); ++i) m[pivots[i]] = a[i][n];
  return m;
}

Eigen::Index matrix_rank(const std::vector<Row>& rows) {
  Matrix m(static_cast<Eigen::Index>(rows.size()), static_cast<Eigen::Index>(rows.front().size()));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows[i].size(); ++j)
      m(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = rows[i][j].value();
  return Eigen::ColPivHouseholderQR<Matrix>(m).rank();
}

// Independent integer vectors e with A e = 0, the simplest ones; empty when -2..2 has not enough.
std::vector<Row> invariants(const std::vector<Row>& a) {
  const std::size_t n = a.front().size();
  const auto wanted = n - static_cast<std::size_t>(matrix_rank(a));
  if (n > 7) return {};
  struct Candidate {
    double cost;
    std::vector<int> e;
  };
  std::vector<Candidate> all;
  std::size_t count = 1;
  for (std::size_t i = 0; i < n; ++i) count *= 5;
  for (std::size_t code = 0; code < count; ++code) {
    std::vector<int> e;
    for (std::size_t i = 0, rest = code; i < n; ++i, rest /= 5) e.push_back(static_cast<int>(rest % 5) - 2);
    const auto first = std::find_if(e.begin(), e.end(), [](int v) { return v != 0; });
    if (first == e.end() || *first < 0) continue;
    bool one = false;
    double cost = 0;
    for (const int v : e) {
      one = one || std::abs(v) == 1;
      cost += (v != 0 ? 1 : 0) + 0.5 * std::abs(v) + (v < 0 ? 0.6 : 0);
    }
    if (!one) continue;  // all entries even
    bool null = true;
    for (const Row& row : a) {
      Rational sum;
      for (std::size_t i = 0; i < n; ++i) sum = sum + row[i] * Rational{e[i], 1};
      null = null && sum.p == 0;
    }
    if (null) all.push_back({cost, std::move(e)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& x, const Candidate& y) {
    return x.cost != y.cost ? x.cost < y.cost : x.e > y.e;
  });
  std::vector<Row> basis;
  for (const Candidate& c : all) {
    if (basis.size() == wanted) break;
    Row row;
    for (const int v : c.e) row.push_back({v, 1});
    basis.push_back(row);
    if (matrix_rank(basis) < static_cast<Eigen::Index>(basis.size())) basis.pop_back();
  }
  return basis.size() == wanted ? basis : std::vector<Row>{};
}

Expr monomial(const Problem& p, const Row& e) {
  std::vector<Expr> factors;
  for (std::size_t i = 0; i < e.size(); ++i)
    if (e[i].p != 0) factors.push_back(power(p.variables[i].text, e[i]));
  return multiply(std::move(factors));
}

}  // namespace

std::vector<Symmetry> find_symmetries(const Problem& p, const Surrogate& surrogate, Work& work) {
  const auto n = static_cast<Eigen::Index>(p.variables.size());
  const std::vector<Eigen::Index> core = core_rows(p);
  const auto rows = static_cast<Eigen::Index>(core.size());
  const Matrix all = surrogate.gradients();
  const double widest = std::clamp(surrogate.error() * 300, 3e-3, 0.05);
  std::vector<Symmetry> found;
  std::set<std::string> seen;
  if (n > 10 || rows < 2 * n + 4) return found;
  Vector f = Vector::Ones(rows);
  if (!surrogate.of_log())
    for (Eigen::Index r = 0; r < rows; ++r) f[r] = p.y[core[static_cast<std::size_t>(r)]];
  for (const Symmetry::Kind kind : {Symmetry::scale, Symmetry::shift, Symmetry::square}) {
    Matrix c(rows, n);
    bool near_zero = false;
    for (Eigen::Index i = 0; i < n; ++i) {
      const Vector& x = p.variables[static_cast<std::size_t>(i)].values;
      near_zero = near_zero || x.cwiseAbs().minCoeff() < 1e-2 * x.cwiseAbs().maxCoeff();
      for (Eigen::Index r = 0; r < rows; ++r) {
        const Eigen::Index at = core[static_cast<std::size_t>(r)];
        const double g = all(at, i);
        c(r, i) = kind == Symmetry::scale ? g * x[at] : kind == Symmetry::shift ? g : g / x[at];
      }
    }
    if ((kind == Symmetry::square && near_zero) || !c.allFinite()) continue;
    for (unsigned set = (1u << n) - 1; set > 0; --set) {
      std::vector<Eigen::Index> members;
      for (Eigen::Index i = 0; i < n; ++i)
        if (set >> i & 1) members.push_back(i);
      for (const bool with_f : {true, false}) {
        if (with_f && kind != Symmetry::scale) continue;
        const auto columns = static_cast<Eigen::Index>(members.size()) + (with_f ? 1 : 0);
        Matrix m(rows, columns);
        for (std::size_t i = 0; i < members.size(); ++i) m.col(static_cast<Eigen::Index>(i)) = c.col(members[i]);
        if (with_f) m.col(columns - 1) = -f;
        m /= std::max(m.cwiseAbs().maxCoeff(), 1e-300);
        for (const double tolerance : {widest, widest / 10}) {
          const Matrix null = null_space(m, tolerance);
          work.spend(1e-6 * static_cast<double>(rows * columns * columns));
          if (null.rows() == 0) continue;
          const std::vector<Row> snapped = snapped_rows(null, static_cast<Eigen::Index>(members.size()));
          if (snapped.empty()) continue;
          Symmetry s;
          s.kind = kind;
          for (const Row& row : snapped) {
            Row a(static_cast<std::size_t>(n));
            for (std::size_t i = 0; i < members.size(); ++i) a[static_cast<std::size_t>(members[i])] = row[i];
            s.a.push_back(std::move(a));
            s.k.push_back(with_f ? row.back() : Rational{});
          }
          if (!seen.insert(text_key(kind, s.a, s.k)).second) continue;
          for (std::size_t i = 0; i < s.a.size(); ++i)
            s.residual = std::max(s.residual, residual_of(c, f, s.a[i], s.k[i]));
          if (s.residual <= 5 * tolerance) found.push_back(std::move(s));
        }
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Symmetry& x, const Symmetry& y) {
    return x.a.size() != y.a.size() ? x.a.size() > y.a.size() : x.residual < y.residual;
  });
  return found;
}

std::optional<Reduction> reduce(const Symmetry& s, const Problem& p) {
  const auto m = particular(s.a, s.k);
  if (!m) return std::nullopt;
  Reduction r;
  const std::vector<Row> basis = invariants(s.a);
  if (basis.empty() && static_cast<std::size_t>(matrix_rank(s.a)) < p.variables.size()) return std::nullopt;
  for (const Row& e : basis) {
    if (s.kind == Symmetry::scale) {
      r.variables.push_back(monomial(p, e));
      continue;
    }
    std::vector<Expr> terms;
    for (std::size_t i = 0; i < e.size(); ++i) {
      const Expr& t = p.variables[i].text;
      if (e[i].p != 0) terms.push_back(number(Constant::of(e[i])) * (s.kind == Symmetry::square ? t * t : t));
    }
    r.variables.push_back(add(std::move(terms)));
  }
  r.factor = s.kind == Symmetry::scale ? monomial(p, *m) : number(1);
  return r;
}

}  // namespace gradloom::formula
