// Attention over the neighbours of a node (GATv2): scores, softmax, weighted sum, and all gradients.
//
// Letters: N nodes; E arcs; H heads of C channels, column h C + c; Fe edge features. A node also attends to itself,
// without edge features. With z_ij = left_i + right_j + edge_e W, for arc e = (j -> i):
//   score_ijh = sum_c a_hc leaky(z_ijhc);  alpha_ij = softmax over j of score_ij;  y_i = sum_j alpha_ij right_j.
// alpha and dl/dscore are kept per arc and head, never per arc and channel; z is computed again where it is needed.
//
// Order of sums: over channels and edge features in order; over the neighbours: the node itself first, then its arcs in
// order, each product by mul_add (contract.h). Plain code for every variant: single numbers in a fixed order have the
// same bits everywhere, in either arithmetic.
// Backward, with g_i = dl_dy_i: ds_ij = alpha_ij (dot(g_i, right_j) - dot(g_i, y_i)), u_ij = ds_ij a leaky'(z_ij);
//   dl_dleft_i = sum_j u_ij;  dl_dright_j = sum_i mul_add(ds_ij, a leaky'(z_ij), alpha_ij g_i);  dl_da = sum_ij ds_ij
//   leaky(z_ij); dl_dW = sum_e edge_e u_e.  dl_da and dl_dW of a block of rows start from zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gradloom/exec/arithmetic.h"

namespace gradloom::kernels::message {

inline constexpr double kLeak = 0.2;  // slope of leaky() below zero

template <class T>
struct Attention {
  const std::uint32_t *ptr = nullptr, *source = nullptr;                           // arcs into each node
  const std::uint32_t *out_ptr = nullptr, *out_target = nullptr, *slot = nullptr;  // the transposed matrix
  std::size_t heads = 1, channels = 1, stride = 0;  // rows of left, right, y and their gradients
  const T *left = nullptr, *right = nullptr;        // (N, H C)
  const T* a = nullptr;                             // (H C)
  std::size_t edge_features = 0, edge_stride = 0;   // Fe; 0: none
  const T* edge = nullptr;                          // (E, Fe)
  const T* edge_weight = nullptr;                   // W (Fe, H C), rows of `stride`
  T *alpha = nullptr, *self_alpha = nullptr;        // (E, H), (N, H)
  T* y = nullptr;
};

// Rows [begin, end) of y and alpha.
template <class T>
void attend(Arithmetic arithmetic, const Attention<T>& p, std::size_t begin, std::size_t end);

template <class T>
struct AttentionGradient {
  const T* dl_dy = nullptr;
  T *ds = nullptr, *self_ds = nullptr;  // (E, H), (N, H): written by attend_gradient, read by attend_source_gradient
  T *dl_dleft = nullptr, *dl_dright = nullptr;
  T* dl_da = nullptr;            // (H C) of this block
  T* dl_dedge_weight = nullptr;  // (Fe, H C) of this block
  T* dl_dedge = nullptr;         // (E, Fe) rows of edge_stride, +=; null: not asked for
};
// Rows [begin, end): ds, dl_dleft, and the block's dl_da and dl_dedge_weight.
template <class T>
void attend_gradient(Arithmetic arithmetic, const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin,
                     std::size_t end);
// Rows [begin, end) of dl_dright, after all rows of attend_gradient.
template <class T>
void attend_source_gradient(Arithmetic arithmetic, const Attention<T>& p, const AttentionGradient<T>& g,
                            std::size_t begin, std::size_t end);

// On which side of its kink every z is, as a hash; in the default arithmetic.
template <class T>
std::uint64_t attention_branches(const Attention<T>& p, std::size_t rows);

}  // namespace gradloom::kernels::message
