// Surrogates: smooth functions through the data whose gradients show the structure of a problem. They only suggest;
// what they suggest is tried on the data themselves.
#pragma once

#include <memory>

#include "gradloom/formula/problem.h"

namespace gradloom::formula {

class Surrogate {
 public:
  virtual ~Surrogate() = default;
  // Relative to the standard deviation of y, of rows that were left out.
  virtual double error() const = 0;
  // Whether gradients are those of log|y| rather than of y.
  virtual bool of_log() const = 0;
  virtual Matrix gradients() const = 0;                    // (N, variables), at the rows of the problem
  virtual Vector predict(const Matrix& points) const = 0;  // (points): y
  // Of a sum: the variables of each term, which no other term has. Empty: it is not known to be one.
  virtual const std::vector<std::vector<std::size_t>>& terms() const = 0;
};

// A Gaussian process with a squared exponential kernel, a length for each variable, and a linear trend; or a sum of
// processes of some of the variables each.
struct ProcessOptions {
  std::vector<std::vector<std::size_t>> terms = {};  // the variables of each; empty: one of all of them
  double length = 2;                                 // where the search for lengths begins, in deviations of x
  bool log_x = false, log_y = false;                 // positive variables; y of one sign
  Eigen::Index rows_for_lengths = 240;
  int iterations = 50;
};
std::unique_ptr<Surrogate> fit_process(const std::vector<Vector>& variables, const Vector& y,
                                       const ProcessOptions& options, double& work);

// The best of the kinds above for a problem.
std::unique_ptr<Surrogate> fit_surrogate(const Problem& problem, Work& work);
// The best sum: of functions of one variable each, or of one variable and of all others.
std::unique_ptr<Surrogate> fit_sum(const Problem& problem, Work& work);

}  // namespace gradloom::formula
