#include <Eigen/Cholesky>
#include <cmath>

#include "gradloom/formula/minimise.h"
#include "gradloom/formula/surrogate.h"

namespace gradloom::formula {
namespace {

constexpr double kTrend = 10;  // prior standard deviation of the linear trend, in units of y's

struct Standard {
  double mean = 0, deviation = 1;
};

Standard standard_of(const Vector& v) {
  const double mean = v.mean();
  const double deviation = std::sqrt((v.array() - mean).square().mean());
  return {mean, deviation > 0 ? deviation : 1};
}

Matrix squared_distances(const Vector& a, const Vector& b) {
  Matrix d(a.size(), b.size());
  for (Eigen::Index j = 0; j < b.size(); ++j) d.col(j) = (a.array() - b[j]).square();
  return d;
}

// (lengths..., amplitude, noise), each between bounds that a sigmoid keeps.
struct Bounds {
  Vector low, high;
  Vector inside(const Vector& u) const { return low.array() + (high - low).array() / (1 + (-u.array()).exp()); }
  Vector slope(const Vector& u) const {
    const auto s = (1 / (1 + (-u.array()).exp())).eval();
    return (high - low).array() * s * (1 - s);
  }
  Vector outside(const Vector& t) const {
    const auto s = ((t - low).array() / (high - low).array()).eval();
    return (s / (1 - s)).log();
  }
};

class Process final : public Surrogate {
 public:
  Process(const std::vector<Vector>& variables, const Vector& y, const ProcessOptions& o, double& work) : o_(o) {
    const Eigen::Index n = y.size(), d = static_cast<Eigen::Index>(variables.size());
    sign_ = y.mean() < 0 ? -1 : 1;
    u_.resize(n, d), x_.resize(n, d);
    for (Eigen::Index k = 0; k < d; ++k) {
      x_.col(k) = variables[static_cast<std::size_t>(k)];
      const Vector v = o.log_x ? Vector(x_.col(k).array().log()) : Vector(x_.col(k));
      x_scale_.push_back(standard_of(v));
      u_.col(k) = (v.array() - x_scale_.back().mean) / x_scale_.back().deviation;
    }
    const Vector z = o.log_y ? Vector(y.cwiseAbs().array().log()) : y;
    y_scale_ = standard_of(z);
    const Vector w = (z.array() - y_scale_.mean) / y_scale_.deviation;
    choose_lengths(w, work);
    solve(w, y, work);
  }

  double error() const override { return error_; }
  bool of_log() const override { return o_.log_y; }

  Matrix gradients() const override {
    Matrix g(u_.rows(), u_.cols());
    for (Eigen::Index k = 0; k < u_.cols(); ++k) {
      // -sum_j K_ij (u_i - u_j) a_j / l^2 + trend
      const Vector weighted = (kernel_ * alpha_.cwiseProduct(u_.col(k)));
      const Vector plain = kernel_ * alpha_;
      g.col(k) = ((weighted - u_.col(k).cwiseProduct(plain)) / (length_[k] * length_[k])).array() + trend_[1 + k];
      g.col(k) *= y_scale_.deviation / x_scale_[static_cast<std::size_t>(k)].deviation;
      if (o_.log_x) g.col(k).array() /= x_.col(k).array();
    }
    return g;
  }

  Vector predict(const Matrix& points) const override {
    Matrix u(points.rows(), points.cols());
    for (Eigen::Index k = 0; k < u.cols(); ++k) {
      const Standard& s = x_scale_[static_cast<std::size_t>(k)];
      const Vector v = o_.log_x ? Vector(points.col(k).array().log()) : Vector(points.col(k));
      u.col(k) = (v.array() - s.mean) / s.deviation;
    }
    Matrix e = Matrix::Zero(u.rows(), u_.rows());
    for (Eigen::Index k = 0; k < u.cols(); ++k) e += squared_distances(u.col(k), u_.col(k)) / (length_[k] * length_[k]);
    Vector z = (amplitude_ * (-0.5 * e.array()).exp()).matrix() * alpha_;
    z.array() += trend_[0];
    z += u * trend_.tail(u.cols());
    z = z.array() * y_scale_.deviation + y_scale_.mean;
    return o_.log_y ? Vector(sign_ * z.array().exp()) : z;
  }

 private:
  // Maximises the marginal likelihood over some of the rows.
  void choose_lengths(const Vector& w, double& work) {
    const Eigen::Index m = std::min(o_.rows_for_lengths, w.size()), d = u_.cols();
    const Vector z = w.head(m);
    std::vector<Matrix> distance;
    for (Eigen::Index k = 0; k < d; ++k) distance.push_back(squared_distances(u_.col(k).head(m), u_.col(k).head(m)));
    Matrix trend(m, d + 1);
    trend << Vector::Ones(m), u_.topRows(m);
    const Matrix linear = kTrend * kTrend * trend * trend.transpose();
    Bounds bounds{Vector::Constant(d + 2, -2.5), Vector::Constant(d + 2, 5)};
    bounds.low[d] = -3, bounds.high[d] = 6;
    bounds.low[d + 1] = std::log(1e-8), bounds.high[d + 1] = 0;
    const auto value = [&](const Vector& u, Vector& gradient) {
      const Vector t = bounds.inside(u);
      const double amplitude = std::exp(2 * t[d]), noise = std::exp(2 * t[d + 1]);
      Matrix e = Matrix::Zero(m, m);
      for (Eigen::Index k = 0; k < d; ++k) e += distance[static_cast<std::size_t>(k)] * std::exp(-2 * t[k]);
      const Matrix kernel = amplitude * (-0.5 * e.array()).exp();
      Matrix c = kernel + linear;
      c.diagonal().array() += noise + 1e-11 * amplitude;
      work += 1.2e-6 * static_cast<double>(m) * static_cast<double>(m) * static_cast<double>(m);
      const Eigen::LLT<Matrix> llt(c);
      if (llt.info() != Eigen::Success) return std::numeric_limits<double>::infinity();
      const Matrix inverse = llt.solve(Matrix::Identity(m, m));
      const Vector a = inverse * z;
      const Matrix wk = (inverse - a * a.transpose()).cwiseProduct(kernel);
      const double trace = inverse.trace() - a.squaredNorm();
      for (Eigen::Index k = 0; k < d; ++k)
        gradient[k] = 0.5 * wk.cwiseProduct(distance[static_cast<std::size_t>(k)]).sum() * std::exp(-2 * t[k]);
      gradient[d] = wk.sum() + 1e-11 * amplitude * trace;
      gradient[d + 1] = noise * trace;
      gradient = gradient.cwiseProduct(bounds.slope(u)).eval();
      return 0.5 * z.dot(a) + Matrix(llt.matrixL()).diagonal().array().log().sum();
    };
    Vector start = Vector::Constant(d + 2, std::log(2.0));
    start[d] = 0.5, start[d + 1] = std::log(1e-3);
    const Vector t =
        bounds.inside(minimise(value, bounds.outside(start), {.iterations = o_.iterations, .tolerance = 1e-5}));
    length_ = t.head(d).array().exp();
    amplitude_ = std::exp(2 * t[d]), noise_ = std::exp(2 * t[d + 1]);
  }

  void solve(const Vector& w, const Vector& y, double& work) {
    const Eigen::Index n = w.size(), d = u_.cols();
    Matrix e = Matrix::Zero(n, n);
    for (Eigen::Index k = 0; k < d; ++k) e += squared_distances(u_.col(k), u_.col(k)) / (length_[k] * length_[k]);
    kernel_ = amplitude_ * (-0.5 * e.array()).exp();
    Matrix trend(n, d + 1);
    trend << Vector::Ones(n), u_;
    Matrix c = kernel_ + kTrend * kTrend * trend * trend.transpose();
    c.diagonal().array() += noise_ + 1e-11 * amplitude_;
    Eigen::LLT<Matrix> llt(c);
    for (int j = 1; llt.info() != Eigen::Success && j < 12; ++j) {
      c.diagonal().array() += amplitude_ * std::pow(10.0, -12 + j);
      llt.compute(c);
    }
    work += 0.7e-6 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    alpha_ = llt.solve(w);
    const Matrix lower_inverse = llt.matrixL().solve(Matrix::Identity(n, n));
    const Vector diagonal = lower_inverse.colwise().squaredNorm();
    trend_ = kTrend * kTrend * trend.transpose() * alpha_;
    const Vector left_out = alpha_.cwiseQuotient(diagonal) * y_scale_.deviation;
    const Vector weight = o_.log_y ? Vector(y.cwiseAbs()) : Vector(Vector::Ones(n));
    error_ = std::sqrt(left_out.cwiseProduct(weight).array().square().mean()) / standard_of(y).deviation;
    if (!std::isfinite(error_) || !alpha_.allFinite()) {
      error_ = 1e9;
      alpha_ = Vector::Zero(n), trend_ = Vector::Zero(d + 1);
    }
  }

  ProcessOptions o_;
  double sign_ = 1, amplitude_ = 1, noise_ = 0, error_ = 0;
  std::vector<Standard> x_scale_;
  Standard y_scale_;
  Matrix x_, u_, kernel_;
  Vector length_, alpha_, trend_;
};

}  // namespace

std::unique_ptr<Surrogate> fit_process(const std::vector<Vector>& variables, const Vector& y,
                                       const ProcessOptions& options, double& work) {
  return std::make_unique<Process>(variables, y, options, work);
}

std::unique_ptr<Surrogate> fit_surrogate(const Problem& p, Work& work) {
  std::vector<Vector> x;
  bool positive = true;
  for (const Variable& v : p.variables) x.push_back(v.values), positive = positive && v.values.minCoeff() > 0;
  const bool one_sign = p.y.minCoeff() > 0 || p.y.maxCoeff() < 0;
  std::vector<ProcessOptions> kinds;
  for (const bool log_x : {false, true})
    for (const bool log_y : {false, true})
      if ((!log_x || positive) && (!log_y || one_sign)) kinds.push_back({.log_x = log_x, .log_y = log_y});
  auto all = work.all_of<std::unique_ptr<Surrogate>>(
      kinds.size(), [&](std::size_t i, double& units) { return fit_process(x, p.y, kinds[i], units); });
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i]->error() < all[best]->error()) best = i;
  return std::move(all[best]);
}

}  // namespace gradloom::formula
