// A penalty on the edges of a spline network that makes most of them vanish (docs/math/formula.md).
//
// kernels/sparsity/sparsity.h defines the strength s_ij of an edge. Of a layer, with S = sum s_ij, Q_i = sum_j s_ij:
//   a S + b H + c N,  H = log S - (1/S) sum s_ij log s_ij,  N = log S - (1/S) sum Q_i log Q_i,
// the entropies of s_ij / S over edges and of Q_i / S over nodes. The penalty is the sum over layers, times a weight.
//
// Sums over inputs run in order: the bits do not depend on threads.
#pragma once

#include <span>

#include "gradloom/kernels/sparsity/sparsity.h"

namespace gradloom::kan {

using kernels::sparsity::kLeastStrength;

struct SparsityOptions {
  double sparsity = 0.0;        // weight of the penalty; 0: none
  double sparsity_l1 = 1.0;     // a
  double sparsity_edges = 1.0;  // b
  double sparsity_nodes = 1.0;  // c
};

// What the penalty of a layer is made from. Arrays belong to the caller.
template <class T>
struct LayerStrengths {
  kernels::sparsity::Strengths<T> edges;
  std::span<double> log_node;  // (In): log Q_i
  std::span<T> common;         // (In): of kernels::sparsity::Slopes
};

struct LayerPenalty {
  double total = 0;         // S
  double edge_entropy = 0;  // H
  double node_entropy = 0;  // N

  double value(const SparsityOptions& o) const {
    return o.sparsity * (o.sparsity_l1 * total + o.sparsity_edges * edge_entropy + o.sparsity_nodes * node_entropy);
  }
};

// From the strengths of all inputs; sets log_node and common.
template <class T>
LayerPenalty layer_penalty(Variant variant, const kernels::spline::Shape& shape, const SparsityOptions& options,
                           const LayerStrengths<T>& strengths);

// gradient (In, R, OutP) += that of the penalty, for the inputs of a range.
template <class T>
void add_penalty_gradient(Variant variant, const kernels::spline::Shape& shape, const SparsityOptions& options,
                          const T* weight, const LayerStrengths<T>& strengths, const LayerPenalty& penalty,
                          kernels::spline::Range inputs, T* gradient);

}  // namespace gradloom::kan
