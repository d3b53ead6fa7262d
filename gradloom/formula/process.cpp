#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "gradloom/formula/minimise.h"
#include "gradloom/formula/surrogate.h"

namespace gradloom::formula {
namespace {

constexpr double kUnitsOfStep = 1.2e-6;  // for each cube of rows
constexpr double kTrend = 10;            // prior standard deviation of the linear trend, in units of y's

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

// (lengths..., an amplitude for each term..., noise), each between bounds that a sigmoid keeps.
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
    parts_ = o.terms;
    if (parts_.empty()) {
      parts_.resize(1);
      for (std::size_t k = 0; k < variables.size(); ++k) parts_[0].push_back(k);
    }
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
  const std::vector<std::vector<std::size_t>>& terms() const override { return o_.terms; }

  Matrix gradients() const override {
    Matrix g(u_.rows(), u_.cols());
    for (Eigen::Index k = 0; k < u_.cols(); ++k) {
      // -sum_j K_ij (u_i - u_j) a_j / l^2 + trend
      const Matrix& kernel = kernels_[part_of(static_cast<std::size_t>(k))];
      const Vector weighted = (kernel * alpha_.cwiseProduct(u_.col(k)));
      const Vector plain = kernel * alpha_;
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
    Vector z = Vector::Zero(u.rows());
    for (std::size_t g = 0; g < parts_.size(); ++g) z += kernel_of(g, u, u_) * alpha_;
    z.array() += trend_[0];
    z += u * trend_.tail(u.cols());
    z = z.array() * y_scale_.deviation + y_scale_.mean;
    return o_.log_y ? Vector(sign_ * z.array().exp()) : z;
  }

 private:
  std::size_t part_of(std::size_t variable) const {
    std::size_t g = 0;
    while (std::find(parts_[g].begin(), parts_[g].end(), variable) == parts_[g].end()) ++g;
    return g;
  }

  Matrix kernel_of(std::size_t part, const Matrix& a, const Matrix& b) const {
    Matrix e = Matrix::Zero(a.rows(), b.rows());
    for (const std::size_t v : parts_[part]) {
      const auto k = static_cast<Eigen::Index>(v);
      e += squared_distances(a.col(k), b.col(k)) / (length_[k] * length_[k]);
    }
    return amplitude_[static_cast<Eigen::Index>(part)] * (-0.5 * e.array()).exp();
  }

  // Maximises the marginal likelihood over some of the rows.
  void choose_lengths(const Vector& w, double& work) {
    const Eigen::Index m = std::min(o_.rows_for_lengths, w.size()), d = u_.cols();
    const Vector z = w.head(m);
    std::vector<Matrix> distance;
    for (Eigen::Index k = 0; k < d; ++k) distance.push_back(squared_distances(u_.col(k).head(m), u_.col(k).head(m)));
    Matrix trend(m, d + 1);
    trend << Vector::Ones(m), u_.topRows(m);
    const Matrix linear = kTrend * kTrend * trend * trend.transpose();
    const auto parts = static_cast<Eigen::Index>(parts_.size());
    Bounds bounds{Vector::Constant(d + parts + 1, -2.5), Vector::Constant(d + parts + 1, 5)};
    bounds.low.segment(d, parts).setConstant(-3), bounds.high.segment(d, parts).setConstant(6);
    bounds.low[d + parts] = std::log(1e-8), bounds.high[d + parts] = 0;
    const auto value = [&](const Vector& u, Vector& gradient) {
      const Vector t = bounds.inside(u);
      const double noise = std::exp(2 * t[d + parts]);
      std::vector<Matrix> kernels;
      Matrix c = linear;
      double amplitudes = 0;
      for (Eigen::Index g = 0; g < parts; ++g) {
        const double amplitude = std::exp(2 * t[d + g]);
        Matrix e = Matrix::Zero(m, m);
        for (const std::size_t k : parts_[static_cast<std::size_t>(g)])
          e += distance[k] * std::exp(-2 * t[static_cast<Eigen::Index>(k)]);
        kernels.push_back(amplitude * (-0.5 * e.array()).exp());
        c += kernels.back(), amplitudes += amplitude;
      }
      c.diagonal().array() += noise + 1e-11 * amplitudes;
      work += kUnitsOfStep * static_cast<double>(m) * static_cast<double>(m) * static_cast<double>(m);
      const Eigen::LLT<Matrix> llt(c);
      if (llt.info() != Eigen::Success) return std::numeric_limits<double>::infinity();
      const Matrix inverse = llt.solve(Matrix::Identity(m, m));
      const Vector a = inverse * z;
      const Matrix w2 = inverse - a * a.transpose();
      const double trace = inverse.trace() - a.squaredNorm();
      for (Eigen::Index g = 0; g < parts; ++g) {
        const Matrix wk = w2.cwiseProduct(kernels[static_cast<std::size_t>(g)]);
        for (const std::size_t v : parts_[static_cast<std::size_t>(g)]) {
          const auto k = static_cast<Eigen::Index>(v);
          gradient[k] = 0.5 * wk.cwiseProduct(distance[v]).sum() * std::exp(-2 * t[k]);
        }
        gradient[d + g] = wk.sum() + 1e-11 * std::exp(2 * t[d + g]) * trace;
      }
      gradient[d + parts] = noise * trace;
      gradient = gradient.cwiseProduct(bounds.slope(u)).eval();
      return 0.5 * z.dot(a) + Matrix(llt.matrixL()).diagonal().array().log().sum();
    };
    Vector start = Vector::Constant(d + parts + 1, std::log(o_.length));
    start.segment(d, parts).setConstant(0.5), start[d + parts] = std::log(1e-3);
    const Vector t =
        bounds.inside(minimise(value, bounds.outside(start), {.iterations = o_.iterations, .tolerance = 1e-5}));
    length_ = t.head(d).array().exp();
    amplitude_ = (2 * t.segment(d, parts).array()).exp(), noise_ = std::exp(2 * t[d + parts]);
  }

  void solve(const Vector& w, const Vector& y, double& work) {
    const Eigen::Index n = w.size(), d = u_.cols();
    Matrix trend(n, d + 1);
    trend << Vector::Ones(n), u_;
    Matrix c = kTrend * kTrend * trend * trend.transpose();
    for (std::size_t g = 0; g < parts_.size(); ++g) {
      kernels_.push_back(kernel_of(g, u_, u_));
      c += kernels_.back();
    }
    const double amplitudes = amplitude_.sum();
    c.diagonal().array() += noise_ + 1e-11 * amplitudes;
    Eigen::LLT<Matrix> llt(c);
    for (int j = 1; llt.info() != Eigen::Success && j < 12; ++j) {
      c.diagonal().array() += amplitudes * std::pow(10.0, -12 + j);
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
  std::vector<std::vector<std::size_t>> parts_;  // the variables of each kernel
  double sign_ = 1, noise_ = 0, error_ = 0;
  std::vector<Standard> x_scale_;
  Standard y_scale_;
  Matrix x_, u_;
  std::vector<Matrix> kernels_;
  Vector length_, amplitude_, alpha_, trend_;
};

}  // namespace

std::unique_ptr<Surrogate> fit_process(const std::vector<Vector>& variables, const Vector& y,
                                       const ProcessOptions& options, double& work) {
  return std::make_unique<Process>(variables, y, options, work);
}

namespace {

// Steps in which lengths of so many processes are looked for, as far as the work allows.
int iterations_within(const Problem& p, std::size_t processes, const Work& work) {
  const ProcessOptions usual;
  const auto m = static_cast<double>(std::min(usual.rows_for_lengths, p.rows()));
  const double step = kUnitsOfStep * m * m * m * static_cast<double>(processes);
  return static_cast<int>(std::clamp((work.limit() - work.used()) / step, 2.0, static_cast<double>(usual.iterations)));
}

}  // namespace

std::unique_ptr<Surrogate> fit_surrogate(const Problem& p, Work& work) {
  std::vector<Vector> x;
  bool positive = true;
  for (const Variable& v : p.variables) x.push_back(v.values), positive = positive && v.values.minCoeff() > 0;
  const bool one_sign = p.y.minCoeff() > 0 || p.y.maxCoeff() < 0;
  std::vector<ProcessOptions> kinds;
  for (const bool log_x : {false, true})
    for (const bool log_y : {false, true})
      if ((!log_x || positive) && (!log_y || one_sign)) kinds.push_back({.log_x = log_x, .log_y = log_y});
  for (ProcessOptions& o : kinds) o.iterations = iterations_within(p, kinds.size(), work);
  auto all = work.all_of<std::unique_ptr<Surrogate>>(
      kinds.size(), [&](std::size_t i, double& units) { return fit_process(x, p.y, kinds[i], units); });
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i]->error() < all[best]->error()) best = i;
  return std::move(all[best]);
}

std::unique_ptr<Surrogate> fit_sum(const Problem& p, Work& work) {
  constexpr double kShort = 0.4;  // sums are asked for where functions vary quickly
  constexpr double kGood = 1e-3;
  std::vector<Vector> x;
  for (const Variable& v : p.variables) x.push_back(v.values);
  const std::size_t n = x.size();
  std::vector<ProcessOptions> kinds(1);
  for (std::size_t k = 0; k < n; ++k) kinds[0].terms.push_back({k});
  for (std::size_t k = 0; k < n && n > 2; ++k) {
    ProcessOptions one{.terms = {{k}, {}}};
    for (std::size_t other = 0; other < n; ++other)
      if (other != k) one.terms[1].push_back(other);
    kinds.push_back(std::move(one));
  }
  for (ProcessOptions& o : kinds) o.length = kShort, o.iterations = iterations_within(p, kinds.size(), work);
  const auto fitted = [&](std::size_t from, std::size_t count) {
    return work.all_of<std::unique_ptr<Surrogate>>(
        count, [&](std::size_t i, double& units) { return fit_process(x, p.y, kinds[from + i], units); });
  };
  std::unique_ptr<Surrogate> best = std::move(fitted(0, 1)[0]);
  if (best->error() < kGood || work.exhausted()) return best;
  for (auto& other : fitted(1, kinds.size() - 1))
    if (other->error() < best->error()) best = std::move(other);
  return best;
}

}  // namespace gradloom::formula
