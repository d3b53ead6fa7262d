// Strengths of the edges of a spline layer, and the gradient of a penalty on them (docs/math/formula.md).
//
// Letters and layouts as in spline/spline.h. For input i and output j, with the spline coefficients c_k = W[i][k][j] of
// R rows and the base weight u = W[i][R][j]:
//   mean  m = (c_0 + c_1 + ...) * (1/R), in this order;
//   q = 0, then q = mul_add(c_k - m, c_k - m, q) for k = 0..R-1; q = mul_add(1/R, q, e^2); with a base
//   q = mul_add(u, u, q);
//   strength s = sqrt(q), and its logarithm.
// Sums over j < Out are of doubles: eight sums take j, j + 8, ...; node those of s, weighted those of s log s by
// mul_add; sums n and n + 4 are added, then n and n + 2, n and n + 1.
//
// Gradient, with f = neg_mul_add(slope, log s, common_i) / s and part = f * (1/R):
//   dl_dw[i][k][j] = mul_add(part, c_k - m, dl_dw[i][k][j]);  dl_dw[i][R][j] = mul_add(f, u, dl_dw[i][R][j]).
// Lanes Out <= j < OutL have weights of zero: their strength is e, their gradient stays zero.
//
// Every function here is serial and allocates nothing. Ranges of inputs may be worked on by different threads at once.
#pragma once

#include "gradloom/kernels/spline/spline.h"

namespace gradloom::kernels::sparsity {

inline constexpr double kLeastStrength = 1e-4;  // e: keeps the derivative finite where an edge vanishes
inline constexpr std::size_t kSums = 8;

// Of all inputs of a layer. Belongs to the caller.
template <class T>
struct Strengths {
  T* mean = nullptr;           // (In, OutL)
  T* strength = nullptr;       // (In, OutL)
  T* logarithm = nullptr;      // (In, OutL)
  double* node = nullptr;      // (In)
  double* weighted = nullptr;  // (In)
};

// What the gradient of a penalty is made of, for a layer.
template <class T>
struct Slopes {
  const T* common = nullptr;  // (In)
  T slope = 0;
};

template <class T>
void strengths(Variant variant, const spline::Shape& shape, const T* weight, spline::Range inputs,
               const Strengths<T>& out);

// dl_dw (In, R, OutP) += the gradient.
template <class T>
void add_gradient(Variant variant, const spline::Shape& shape, const T* weight, const Strengths<T>& strengths,
                  const Slopes<T>& slopes, spline::Range inputs, T* dl_dw);

}  // namespace gradloom::kernels::sparsity
