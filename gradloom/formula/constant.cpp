#include "gradloom/formula/constant.h"

#include <cmath>
#include <cstdlib>
#include <numbers>
#include <numeric>

namespace gradloom::formula {
namespace {

constexpr std::int64_t kLargest = 1'000'000'000;  // beyond it a fraction is not what anybody means
constexpr int kMostPis = 64;                      // likewise a power of pi
constexpr std::int64_t kMostFactors = 64;

bool small(Rational r) { return std::abs(r.p) < kLargest && r.q < kLargest; }

}  // namespace

Rational Rational::of(std::int64_t p, std::int64_t q) {
  if (q < 0) p = -p, q = -q;
  const std::int64_t g = std::gcd(p, q);
  return g > 1 ? Rational{p / g, q / g} : Rational{p, q};
}

Rational operator+(Rational a, Rational b) { return Rational::of(a.p * b.q + b.p * a.q, a.q * b.q); }
Rational operator-(Rational a, Rational b) { return Rational::of(a.p * b.q - b.p * a.q, a.q * b.q); }
Rational operator*(Rational a, Rational b) { return Rational::of(a.p * b.p, a.q * b.q); }
Rational operator/(Rational a, Rational b) { return Rational::of(a.p * b.q, a.q * b.p); }

Rational nearest_fraction(double x, std::int64_t largest) {
  // Convergents of the continued fraction; the last step is shortened so that the denominator fits.
  if (!(std::abs(x) < 1e9)) return {0, 1};
  const bool negative = x < 0;
  double rest = std::abs(x);
  std::int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
  for (int step = 0; step < 40; ++step) {
    const auto a = static_cast<std::int64_t>(std::floor(rest));
    if (q1 != 0 && a > (largest - q0) / q1) {
      const std::int64_t k = (largest - q0) / q1;
      const std::int64_t p = p0 + k * p1, q = q0 + k * q1;
      const double other = std::abs(static_cast<double>(p) / static_cast<double>(q) - std::abs(x));
      const double best = std::abs(static_cast<double>(p1) / static_cast<double>(q1) - std::abs(x));
      if (q > 0 && other < best) p1 = p, q1 = q;
      break;
    }
    const std::int64_t p = a * p1 + p0, q = a * q1 + q0;
    p0 = p1, q0 = q1, p1 = p, q1 = q;
    const double fraction = rest - static_cast<double>(a);
    if (fraction < 1e-15 || p1 > kLargest) break;
    rest = 1 / fraction;
    if (!(rest < 1e15)) break;
  }
  return Rational::of(negative ? -p1 : p1, q1);
}

Constant Constant::of(Rational ratio, int pi_power, int root_two) {
  if (ratio.p == 0) pi_power = root_two = 0;
  Constant c;
  c.exact = true, c.ratio = ratio, c.pi_power = pi_power, c.root_two = root_two;
  c.value = ratio.value();
  for (int i = 0; i < std::abs(pi_power); ++i)
    c.value = pi_power > 0 ? c.value * std::numbers::pi : c.value / std::numbers::pi;
  if (root_two) c.value *= std::numbers::sqrt2;
  return c;
}

Constant Constant::approximate(double value) {
  Constant c;
  c.value = value;
  return c;
}

Constant operator*(const Constant& a, const Constant& b) {
  if (a.exact && b.exact && small(a.ratio) && small(b.ratio)) {
    Rational r = a.ratio * b.ratio;
    int root = a.root_two + b.root_two;
    if (root == 2) r = r * Rational{2, 1}, root = 0;
    const int pis = a.pi_power + b.pi_power;
    if (small(r) && std::abs(pis) <= kMostPis) return Constant::of(r, pis, root);
  }
  if (a.is(0) || b.is(0)) return Constant::of(0);
  return Constant::approximate(a.value * b.value);
}

Constant operator+(const Constant& a, const Constant& b) {
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  if (a.exact && b.exact && a.pi_power == b.pi_power && a.root_two == b.root_two && small(a.ratio) && small(b.ratio)) {
    const Rational r = a.ratio + b.ratio;
    if (small(r)) return Constant::of(r, a.pi_power, a.root_two);
  }
  return Constant::approximate(a.value + b.value);
}

Constant power(const Constant& a, Rational exponent) {
  if (exponent.p == 0) return Constant::of(1);
  if (exponent.integer() && a.exact && std::abs(exponent.p) <= kMostFactors && !a.is(0)) {
    const Constant base =
        exponent.p > 0
            ? a
            : Constant::of(Rational{1, 1} / (a.root_two ? a.ratio * Rational{2, 1} : a.ratio), -a.pi_power, a.root_two);
    Constant result = base;
    for (std::int64_t i = 1; i < std::abs(exponent.p); ++i) result = result * base;
    return result;
  }
  if (exponent.q == 2 && a.exact && a.root_two == 0 && a.pi_power % 2 == 0 && a.ratio.p > 0) {
    // The root of p/q with squares, or twice squares, above and below.
    const auto root = [](std::int64_t n) {
      const auto r = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(n))));
      return r * r == n ? r : 0;
    };
    const std::int64_t p = a.ratio.p, q = a.ratio.q;
    Constant c;
    if (root(p) && root(q))
      c = Constant::of(Rational::of(root(p), root(q)), a.pi_power / 2);
    else if (p % 2 == 0 && root(p / 2) && root(q))
      c = Constant::of(Rational::of(root(p / 2), root(q)), a.pi_power / 2, 1);
    else if (q % 2 == 0 && root(p) && root(q / 2))
      c = Constant::of(Rational::of(root(p), 2 * root(q / 2)), a.pi_power / 2, 1);
    if (c.exact) return power(c, {exponent.p, 1});
  }
  return Constant::approximate(std::pow(a.value, exponent.value()));
}

Constant snap(double x, const SnapOptions& options) {
  if (x == 0) return Constant::of(0);
  for (int step = 0; step <= 2 * options.pi_powers; ++step) {
    const int k = step % 2 ? (step + 1) / 2 : -step / 2;
    for (int j = 0; j <= (options.root_two ? 1 : 0); ++j) {
      const double v = x / Constant::of({1, 1}, k, j).value;
      if (!(std::abs(v) > 1e-5 && std::abs(v) < 1e5)) continue;
      const Rational r = nearest_fraction(v, options.denominator);
      if (r.p != 0 && std::abs(r.value() - v) < options.tolerance * std::abs(v)) return Constant::of(r, k, j);
    }
  }
  if (options.decimals && std::abs(x) > 0.1 && std::abs(x) < 1e5)
    for (const std::int64_t scale : {100, 1000}) {
      const double v = x * static_cast<double>(scale);
      if (std::abs(std::round(v) - v) < options.tolerance * std::abs(v))
        return Constant::of(Rational::of(std::llround(v), scale));
    }
  return Constant::approximate(x);
}

}  // namespace gradloom::formula
