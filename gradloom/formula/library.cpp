#include "gradloom/formula/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gradloom/base/error.h"
#include "gradloom/formula/refine.h"

namespace gradloom::formula {
namespace {

template <int P, int Q = 1>
Expr powered(const Expr& x) {
  return power(x, Rational::of(P, Q));
}

template <Function F>
Expr called(const Expr& x) {
  return call(F, x);
}

constexpr LibraryFunction kLibrary[] = {
    {"0", [](const Expr&) { return number(0); }, 0, false, false},
    {"x", powered<1>, 1, false, false},
    {"x^2", powered<2>, 2, false, true},
    {"x^3", powered<3>, 3, false, true},
    {"sqrt", powered<1, 2>, 3, false, true},
    {"1/x", powered<-1>, 3, false, true},
    {"exp", called<Function::exp>, 3, true, false},
    {"log", called<Function::log>, 3, false, true},
    {"sin", called<Function::sin>, 3, true, true},
    {"abs", called<Function::abs>, 3, false, true},
    {"x^4", powered<4>, 4, false, true},
    {"x^5", powered<5>, 5, false, true},
    {"1/x^2", powered<-2>, 4, false, true},
    {"1/x^3", powered<-3>, 5, false, true},
    {"x^(3/2)", powered<3, 2>, 4, false, true},
    {"1/sqrt", powered<-1, 2>, 4, false, true},
    {"cos", called<Function::cos>, 3, true, false},
    {"tanh", called<Function::tanh>, 4, true, true},
    {"atan", called<Function::atan>, 4, true, true},
    {"gaussian", [](const Expr& x) { return call(Function::exp, -(x * x)); }, 4, true, true},
    {"sigmoid", [](const Expr& x) { return number(1) / (number(1) + call(Function::exp, -x)); }, 4, true, true},
    {"tan", called<Function::tan>, 4, true, true},
    {"sinh", called<Function::sinh>, 4, true, true},
    {"cosh", called<Function::cosh>, 4, true, true},
    {"asin", called<Function::asin>, 4, true, true},
    {"acos", called<Function::acos>, 4, true, true},
    {"atanh", called<Function::atanh>, 5, true, true},
    {"asinh", called<Function::asinh>, 5, true, true},
    {"erf", called<Function::erf>, 5, true, true},
    {"lorentz", [](const Expr& x) { return number(1) / (number(1) + x * x); }, 5, true, true},
};

struct Line {
  double slope = 0, offset = 0, error = 1e300;  // error: mean square
};

// The best a f + d.
Line fit_line(const std::vector<double>& f, const std::vector<double>& y) {
  const auto n = static_cast<double>(y.size());
  double mf = 0, my = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!(std::abs(f[i]) < 1e8)) return {};
    mf += f[i] / n, my += y[i] / n;
  }
  double ff = 0, fy = 0, yy = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    ff += (f[i] - mf) * (f[i] - mf), fy += (f[i] - mf) * (y[i] - my), yy += (y[i] - my) * (y[i] - my);
  }
  if (!(ff > 1e-20 * n)) return {0, my, yy / n};
  const double slope = fy / ff;
  return {slope, my - slope * mf, std::max(0.0, yy - slope * fy) / n};
}

// b and c, in units in which x is in [-1, 1], where a line in f(b x + c) fits best.
std::pair<double, double> best_place(const LibraryFunction& f, const std::vector<double>& u,
                                     const std::vector<double>& y) {
  std::vector<double> scales{1}, shifts{0};
  if (f.scale) {
    scales.clear();
    for (int i = 0; i < 24; ++i) scales.push_back(0.1 * std::pow(100.0, i / 23.0));
  }
  if (f.shift) {
    shifts.clear();
    for (int i = -20; i <= 20; ++i) shifts.push_back(0.2 * i * (f.scale ? 1 : 0.55));
    if (!f.scale)
      for (const double far : {3.0, 4.5, 7.0, 12.0}) shifts.push_back(far), shifts.push_back(-far);
  }
  std::pair<double, double> best{1, 0};
  double least = 1e301;
  const Expr text = f.text(variable(0));
  const std::vector<int> signs = f.scale && f.shift ? std::vector<int>{1} : std::vector<int>{1, -1};
  Columns argument(1, std::vector<double>(u.size()));
  for (const int sign : signs)
    for (const double b : scales)
      for (const double c : shifts) {
        for (std::size_t i = 0; i < u.size(); ++i) argument[0][i] = sign * b * u[i] + c;
        const double error = fit_line(evaluate(text, argument, u.size()), y).error;
        if (error < least) least = error, best = {sign * b, c};
      }
  return best;
}

}  // namespace

std::span<const LibraryFunction> library() { return kLibrary; }

std::vector<EdgeCandidate> fit_edge(const std::vector<double>& x, const std::vector<double>& y,
                                    const EdgeFitOptions& options) {
  for (const std::string& name : options.functions)
    if (std::none_of(std::begin(kLibrary), std::end(kLibrary), [&](const auto& f) { return f.name == name; })) {
      std::string all;
      for (const auto& f : kLibrary) all += (all.empty() ? "" : ", ") + std::string(f.name);
      throw_invalid(fmt::format("there is no function '{}'; there are {}", name, all));
    }
  if (x.empty()) return {};
  // Few points show the shape; all of them fit the constants.
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });
  const std::size_t few = std::min<std::size_t>(60, x.size()), many = std::min<std::size_t>(300, x.size());
  const double low = x[order.front()], high = x[order.back()];
  const double middle = (low + high) / 2, half = high > low ? (high - low) / 2 : 1;
  const auto thin = [&](std::size_t count) {
    std::pair<std::vector<double>, std::vector<double>> t;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = order[count > 1 ? i * (order.size() - 1) / (count - 1) : 0];
      t.first.push_back(x[at]), t.second.push_back(y[at]);
    }
    return t;
  };
  const auto [fx, fy] = thin(few);
  const auto [mx, my] = thin(many);
  std::vector<double> u;
  for (const double v : fx) u.push_back((v - middle) / half);
  const Columns all{mx}, whole{x};
  const double mean = std::accumulate(y.begin(), y.end(), 0.0) / static_cast<double>(y.size());
  double variance = 0;
  for (const double v : y) variance += (v - mean) * (v - mean) / static_cast<double>(y.size());
  std::vector<EdgeCandidate> found;
  for (const LibraryFunction& f : kLibrary) {
    if (!options.functions.empty() &&
        std::find(options.functions.begin(), options.functions.end(), f.name) == options.functions.end())
      continue;
    EdgeCandidate c;
    c.function = f.name, c.complexity = f.complexity;
    if (f.complexity == 0) {
      c.text = approximate(mean);
    } else {
      const auto [b, shift] = best_place(f, u, fy);
      // In x itself: b (x - middle)/half + c.
      Expr inside = approximate(b / half) * variable(0) + approximate(shift - b * middle / half);
      if (f.complexity == 1) inside = variable(0);
      const Expr bare = f.text(inside);
      const Line line = fit_line(evaluate(bare, all, many), my);
      if (!(line.error < 1e299) || line.slope == 0) continue;
      const Expr start = approximate(line.slope) * bare + approximate(line.offset);
      c.text = refine_constants(start, all, my, f.complexity == 1 ? 2 : 12);
    }
    c.rmse = rms_error(c.text, whole, y);
    if (!std::isfinite(c.rmse)) continue;
    c.r2 = variance > 0 ? 1 - c.rmse * c.rmse / variance : (c.rmse == 0 ? 1 : 0);
    found.push_back(std::move(c));
  }
  const double unit = std::sqrt(variance) > 0 ? std::sqrt(variance) : 1;
  const auto cost = [&](const EdgeCandidate& c) {
    return std::log10(c.rmse / unit + 1e-6) + options.penalty * c.complexity;
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const EdgeCandidate& a, const EdgeCandidate& b) { return cost(a) < cost(b); });
  if (found.size() > options.most) found.resize(options.most);
  return found;
}

}  // namespace gradloom::formula
