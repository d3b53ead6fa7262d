#include "gradloom/formula/minimise.h"

#include <cmath>
#include <deque>

namespace gradloom::formula {
namespace {

struct Pair {
  Vector s, y;
  double rho;
};

Vector direction(const std::deque<Pair>& pairs, const Vector& gradient) {
  Vector q = -gradient;
  std::vector<double> alpha(pairs.size());
  for (std::size_t i = pairs.size(); i-- > 0;) {
    alpha[i] = pairs[i].rho * pairs[i].s.dot(q);
    q -= alpha[i] * pairs[i].y;
  }
  if (!pairs.empty()) q *= pairs.back().s.dot(pairs.back().y) / pairs.back().y.squaredNorm();
  for (std::size_t i = 0; i < pairs.size(); ++i) q += (alpha[i] - pairs[i].rho * pairs[i].y.dot(q)) * pairs[i].s;
  return q;
}

}  // namespace

Vector minimise(const Objective& f, Vector x, const MinimiseOptions& o) {
  Vector gradient(x.size()), next_gradient(x.size());
  double value = f(x, gradient);
  if (!std::isfinite(value)) return x;
  std::deque<Pair> pairs;
  for (int i = 0; i < o.iterations; ++i) {
    Vector d = direction(pairs, gradient);
    double slope = d.dot(gradient);
    if (!(slope < 0)) {
      pairs.clear();
      d = -gradient, slope = -gradient.squaredNorm();
    }
    if (!(slope < 0)) break;
    double step = pairs.empty() ? std::min(1.0, 1 / d.norm()) : 1.0;
    double next = 0;
    Vector at;
    bool found = false;
    for (int shrink = 0; shrink < 25; ++shrink, step *= 0.4) {
      at = x + step * d;
      next = f(at, next_gradient);
      if (std::isfinite(next) && next_gradient.allFinite() && next <= value + 1e-4 * step * slope) {
        found = true;
        break;
      }
    }
    if (!found) {
      if (pairs.empty()) break;
      pairs.clear();
      continue;
    }
    const Vector s = at - x, y = next_gradient - gradient;
    if (s.dot(y) > 1e-12 * s.norm() * y.norm()) {
      pairs.push_back({s, y, 1 / s.dot(y)});
      if (pairs.size() > static_cast<std::size_t>(o.history)) pairs.pop_front();
    }
    const double gained = value - next;
    x = at, value = next, gradient = next_gradient;
    if (gained <= o.tolerance * std::max(1e-300, std::abs(value))) break;
  }
  return x;
}

}  // namespace gradloom::formula
