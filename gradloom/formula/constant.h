// Constants of formulas: doubles that may be known exactly, as p/q * pi^k * sqrt(2)^j.
#pragma once

#include <cstdint>
#include <optional>

namespace gradloom::formula {

// A fraction in lowest terms with q > 0.
struct Rational {
  std::int64_t p = 0, q = 1;

  static Rational of(std::int64_t p, std::int64_t q = 1);  // q is not 0
  double value() const { return static_cast<double>(p) / static_cast<double>(q); }
  bool integer() const { return q == 1; }
  bool operator==(const Rational&) const = default;
};
Rational operator+(Rational a, Rational b);
Rational operator-(Rational a, Rational b);
Rational operator*(Rational a, Rational b);
Rational operator/(Rational a, Rational b);  // b is not 0

// The fraction nearest to x whose denominator is at most `largest`.
Rational nearest_fraction(double x, std::int64_t largest);

struct Constant {
  double value = 0;
  bool exact = false;  // value is ratio * pi^pi_power * sqrt(2)^root_two
  Rational ratio;
  int pi_power = 0;
  int root_two = 0;  // 0 or 1

  static Constant of(Rational ratio, int pi_power = 0, int root_two = 0);
  static Constant of(std::int64_t p) { return of(Rational::of(p)); }
  static Constant approximate(double value);
  bool is(std::int64_t p) const { return exact && ratio == Rational{p, 1} && pi_power == 0 && root_two == 0; }
};

// Exact where both are and the result has that form; else the rounded value.
Constant operator*(const Constant& a, const Constant& b);
Constant operator+(const Constant& a, const Constant& b);
Constant power(const Constant& a, Rational exponent);

struct SnapOptions {
  std::int64_t denominator = 48;
  double tolerance = 1e-9;  // relative
  int pi_powers = 2;        // up to this, of both signs
  bool root_two = true;
  bool decimals = true;  // of at most three digits behind the point
};

// The simplest exact constant within the tolerance of x, or x itself, which is not exact.
Constant snap(double x, const SnapOptions& options = {});

}  // namespace gradloom::formula
