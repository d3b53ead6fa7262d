// Sparse linear relations between columns of numbers.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace gradloom::formula {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

// A column of a relation sum P_k(x) - g(y) sum Q_k(x) = 0.
struct Column {
  double complexity = 0;
  bool with_y = false;  // values are g(y) * Q_k(x) rather than P_k(x)
  Vector values;
};

struct RelationOptions {
  std::size_t max_terms = 9;
  double dependent = 1e-9;  // a column is dependent when this little of its unit length is left
  double residual = 1e-10;  // largest residual of the relation, relative to unit columns
  double prune = 1e-5;      // smaller coefficients, relative to the largest, are dropped
};

// Coefficients by column; the columns named here add up to zero.
struct Relation {
  std::vector<std::pair<std::size_t, double>> terms;
};

// Goes through the columns from simple to complex and returns the first relation that has terms with and without y,
// is sparse, and holds. Columns that are not finite are left out. `work` grows by what was computed (work.h).
std::optional<Relation> find_relation(const std::vector<Column>& columns, const RelationOptions& options, double& work);

// The least singular value of the matrix with unit columns over the second least: 0 for a relation that holds exactly,
// 1 when it is not finite.
double relation_gap(Matrix a, double& work);

}  // namespace gradloom::formula
