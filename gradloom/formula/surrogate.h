// Surrogates: smooth functions through the data whose gradients show the structure of a problem. They only suggest;
// what they suggest is tried on the data themselves.
#pragma once

#include <memory>

#include "gradloom/formula/work.h"

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
};

// A Gaussian process with a squared exponential kernel, a length for each variable, and a linear trend.
struct ProcessOptions {
  bool log_x = false, log_y = false;  // positive variables; y of one sign
  Eigen::Index rows_for_lengths = 240;
  int iterations = 50;
};
std::unique_ptr<Surrogate> fit_process(const std::vector<Vector>& variables, const Vector& y,
                                       const ProcessOptions& options, double& work);

// The best of the kinds above for a problem.
std::unique_ptr<Surrogate> fit_surrogate(const Problem& problem, Work& work);

}  // namespace gradloom::formula
