// Dual<T>: a number and its derivative along one direction. The scalar references run on it, so a gradient can be
// checked element by element without the noise of differences. Its arithmetic is split: those of the namespace split
// do.
#pragma once

#include "gradloom/kernels/elementary/elementary.h"

namespace gradloom::kernels {

template <class T>
struct Dual {
  T v{}, d{};
  Dual() = default;
  Dual(T value, T derivative = T{}) : v(value), d(derivative) {}
  template <class I>
  requires std::is_arithmetic_v<I>
  explicit(!std::is_same_v<I, int>) Dual(I value) : v(static_cast<T>(value)), d{} {}

  friend Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
  friend Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
  friend Dual operator-(Dual a) { return {-a.v, -a.d}; }
  friend Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
  friend Dual operator/(Dual a, Dual b) { return {a.v / b.v, (a.d - a.v / b.v * b.d) / b.v}; }
  Dual& operator+=(Dual b) { return *this = *this + b; }
  // Comparisons look at the value: a derivative is taken within one branch.
  friend bool operator<(Dual a, Dual b) { return a.v < b.v; }
  friend bool operator>(Dual a, Dual b) { return a.v > b.v; }
  friend bool operator<=(Dual a, Dual b) { return a.v <= b.v; }
  friend bool operator>=(Dual a, Dual b) { return a.v >= b.v; }
  friend bool operator==(Dual a, Dual b) { return a.v == b.v; }
};

template <class T>
Dual<T> mul_add(Dual<T> a, Dual<T> b, Dual<T> c) {
  return c + a * b;
}
template <class T>
Dual<T> neg_mul_add(Dual<T> a, Dual<T> b, Dual<T> c) {
  return c - a * b;
}

// The part that decides branches and indices.
inline float primal(float x) { return x; }
inline double primal(double x) { return x; }
template <class T>
T primal(Dual<T> x) {
  return x.v;
}

template <class T>
ValueAndSlope<Dual<T>> silu(Dual<T> x) {
  const T s = split::sigmoid(x.v), one = 1;
  const T slope = s * (one + x.v * (one - s));
  // The derivative of the slope is not needed: nothing here differentiates twice.
  return {{x.v * s, slope * x.d}, {slope, T{}}};
}

template <class T>
Dual<T> exp(Dual<T> x) {
  const T e = split::exp(x.v);
  return {e, e * x.d};
}

}  // namespace gradloom::kernels
