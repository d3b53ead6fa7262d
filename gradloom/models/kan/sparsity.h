// A penalty on the edges of a spline network that makes most of them vanish (docs/math/formula.md).
//
// Strength of an edge: s = sqrt(e^2 + u^2 + (1/R) sum_k (c_k - mean c)^2), with R spline rows, u the base weight (or
// 0), e = kLeastStrength. A constant spline has no strength: it is a bias. Of a layer, with S = sum s_ij, Q_i = sum_j
// s_ij:
//   a S + b H + c N,  H = log S - (1/S) sum s_ij log s_ij,  N = log S - (1/S) sum Q_i log Q_i,
// the entropies of s_ij / S over edges and of Q_i / S over nodes. The penalty is the sum over layers, times a weight.
//
// Sums run over j within an input, then over inputs, in order: the bits do not depend on threads.
#pragma once

#include <span>

#include "gradloom/exec/exec.h"
#include "gradloom/kernels/spline/spline.h"

namespace gradloom::kan {

inline constexpr double kLeastStrength = 1e-4;

struct SparsityOptions {
  double sparsity = 0.0;        // weight of the penalty; 0: none
  double sparsity_l1 = 1.0;     // a
  double sparsity_edges = 1.0;  // b
  double sparsity_nodes = 1.0;  // c
};

// What the penalty of a layer is made from. Spans belong to the caller.
template <class T>
struct LayerStrengths {
  std::span<T> strength;       // (In, OutL)
  std::span<T> logarithm;      // (In, OutL): of the strength
  std::span<double> node;      // (In): Q_i
  std::span<double> weighted;  // (In): sum_j s_ij log s_ij
};

// The inputs of a range; weight (In, R, OutP) as in kernels/spline/spline.h.
template <class T>
void edge_strengths(Variant variant, const kernels::spline::Shape& shape, const T* weight,
                    kernels::spline::Range inputs, const LayerStrengths<T>& out);

struct LayerPenalty {
  double total = 0;         // S
  double edge_entropy = 0;  // H
  double node_entropy = 0;  // N

  double value(const SparsityOptions& o) const {
    return o.sparsity * (o.sparsity_l1 * total + o.sparsity_edges * edge_entropy + o.sparsity_nodes * node_entropy);
  }
};

// From the strengths of all inputs.
template <class T>
LayerPenalty layer_penalty(const kernels::spline::Shape& shape, const LayerStrengths<T>& strengths);

// gradient (In, R, OutP) += that of the penalty, for the inputs of a range.
template <class T>
void add_penalty_gradient(const kernels::spline::Shape& shape, const SparsityOptions& options, const T* weight,
                          const LayerStrengths<T>& strengths, const LayerPenalty& penalty,
                          kernels::spline::Range inputs, T* gradient);

}  // namespace gradloom::kan
