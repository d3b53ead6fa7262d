#include "gradloom/formula/relation.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace gradloom::formula {
namespace {

double work_of(double rows, double columns) { return rows * columns * columns * 1e-6; }

// Which columns take part, simplest first.
std::vector<std::size_t> in_order(const std::vector<Column>& columns, std::size_t rows) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].values.allFinite() && columns[i].values.cwiseAbs().maxCoeff() > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const double ca = columns[a].complexity + (columns[a].with_y ? 0.5 : 0);
    const double cb = columns[b].complexity + (columns[b].with_y ? 0.5 : 0);
    return ca < cb;
  });
  if (order.size() > rows / 2) order.resize(rows / 2);
  return order;
}

// The relation of column j of `a` with those of `simpler`, or nothing.
std::optional<std::vector<std::pair<std::size_t, double>>> solve_for(const Matrix& a, std::size_t j,
                                                                     std::vector<std::size_t> simpler, Vector start,
                                                                     const RelationOptions& o, double& work) {
  const auto rows = static_cast<double>(a.rows());
  Vector c = std::move(start);
  for (int round = 0; round < 4; ++round) {
    const double least = o.prune * std::max(1.0, c.cwiseAbs().maxCoeff());
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < simpler.size(); ++i)
      if (std::abs(c[static_cast<Eigen::Index>(i)]) > least) kept.push_back(simpler[i]);
    const bool all = kept.size() == simpler.size();
    simpler = std::move(kept);
    if (simpler.empty()) return std::nullopt;
    if (simpler.size() > 60 && round == 0) return std::nullopt;  // nothing sparse comes from this
    Matrix part(a.rows(), static_cast<Eigen::Index>(simpler.size()));
    for (std::size_t i = 0; i < simpler.size(); ++i)
      part.col(static_cast<Eigen::Index>(i)) = a.col(static_cast<Eigen::Index>(simpler[i]));
    c = part.colPivHouseholderQr().solve(a.col(static_cast<Eigen::Index>(j)));
    work += work_of(rows, static_cast<double>(simpler.size()));
    if (all) break;
  }
  if (simpler.size() + 1 > o.max_terms || !c.allFinite()) return std::nullopt;
  Vector residual = -a.col(static_cast<Eigen::Index>(j));
  for (std::size_t i = 0; i < simpler.size(); ++i)
    residual += c[static_cast<Eigen::Index>(i)] * a.col(static_cast<Eigen::Index>(simpler[i]));
  if (!(residual.cwiseAbs().maxCoeff() * std::sqrt(rows) <= o.residual)) return std::nullopt;
  std::vector<std::pair<std::size_t, double>> terms;
  for (std::size_t i = 0; i < simpler.size(); ++i) terms.emplace_back(simpler[i], -c[static_cast<Eigen::Index>(i)]);
  terms.emplace_back(j, 1.0);
  return terms;
}

}  // namespace

std::optional<Relation> find_relation(const std::vector<Column>& columns, const RelationOptions& o, double& work) {
  if (columns.empty()) return std::nullopt;
  const Eigen::Index rows = columns.front().values.size();
  const std::vector<std::size_t> order = in_order(columns, static_cast<std::size_t>(rows));
  const auto count = static_cast<Eigen::Index>(order.size());
  if (count < 2) return std::nullopt;
  Matrix a(rows, count);
  Vector norms(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const Vector& v = columns[order[static_cast<std::size_t>(i)]].values;
    norms[i] = v.norm();
    a.col(i) = v / norms[i];
  }
  if (!norms.allFinite()) return std::nullopt;
  // Fewer rows are enough to see that columns are independent; a relation is then fitted to all of them.
  const Eigen::Index some = std::min<Eigen::Index>(rows, std::max<Eigen::Index>(200, 2 * count + 40));
  Matrix r = Eigen::HouseholderQR<Matrix>(a.topRows(some)).matrixQR().topRows(count);
  work += work_of(static_cast<double>(some), static_cast<double>(count));
  const double scale = std::sqrt(static_cast<double>(some) / static_cast<double>(rows));
  std::vector<std::size_t> independent{0};
  int attempts = 0;
  for (Eigen::Index j = 1; j < count; ++j) {
    if (std::abs(r(j, j)) >= o.dependent * scale) {
      independent.push_back(static_cast<std::size_t>(j));
      continue;
    }
    if (attempts++ == 3) break;
    // R c = r_j over the independent columns.
    const auto m = static_cast<Eigen::Index>(independent.size());
    Matrix part(j, m);
    for (Eigen::Index i = 0; i < m; ++i)
      part.col(i) = r.col(static_cast<Eigen::Index>(independent[static_cast<std::size_t>(i)])).head(j);
    part = part.triangularView<Eigen::Upper>();
    Vector c;
    if (m == j)
      c = part.triangularView<Eigen::Upper>().solve(r.col(j).head(j));
    else
      c = part.colPivHouseholderQr().solve(r.col(j).head(j));
    if (!c.allFinite()) break;
    const auto terms = solve_for(a, static_cast<std::size_t>(j), independent, std::move(c), o, work);
    if (!terms) return std::nullopt;
    Relation relation;
    bool with = false, without = false;
    for (const auto& [i, k] : *terms) {
      const std::size_t column = order[i];
      relation.terms.emplace_back(column, k / norms[static_cast<Eigen::Index>(i)]);
      (columns[column].with_y ? with : without) = true;
    }
    if (with && without) return relation;
  }
  return std::nullopt;
}

double relation_gap(Matrix a, double& work) {
  if (!a.allFinite()) return 1;
  for (Eigen::Index i = 0; i < a.cols(); ++i) {
    const double norm = a.col(i).norm();
    if (!(norm > 0)) return 1;
    a.col(i) /= norm;
  }
  const Eigen::Index k = a.cols();
  work += work_of(static_cast<double>(a.rows()), static_cast<double>(k));
  Eigen::HouseholderQR<Eigen::Ref<Matrix>> qr(a);
  const Matrix r = qr.matrixQR().topRows(k).triangularView<Eigen::Upper>();
  const Vector s = Eigen::JacobiSVD<Matrix>(r).singularValues();
  return s[k - 2] > 0 ? s[k - 1] / s[k - 2] : 1;
}

}  // namespace gradloom::formula
