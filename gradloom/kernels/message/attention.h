// Attention over the neighbours of a node (GATv2): scores, softmax, weighted sum, and all gradients.
//
// Letters: N nodes; E arcs; H heads of C channels, column h C + c; Fe edge features. A node also attends to itself,
// without edge features. With z_ij = left_i + right_j + edge_e W, for arc e = (j -> i):
//   score_ijh = sum_c a_hc leaky(z_ijhc);  alpha_ij = softmax over j of score_ij;  y_i = sum_j alpha_ij right_j.
// alpha and dl/dscore are kept per arc and head, never per arc and channel; z is computed again where it is needed.
// Rows are a multiple of 16 columns; those beyond H C are padding, which is zero in left, right, a and W, and becomes
// +0 in y and the gradients.
//
// Order of sums, each product by mul_add (contract.h):
//   z: left + right, then the edge features in order.
//   Over the channels of a head (scores, dot products): 8 lanes, column mod 8, from zero; the lanes are added as a
//     tree, +4, +2, +1. Where a head begins or ends within a group of 8 columns, the other columns count as zeros.
//   Over the neighbours of a node: the node itself first, then its arcs in order. More than kSegment (message.h) arcs
//     are cut into segments of kSegment: the first begins with the node itself, the others with zero, and the segments
//     are added in order.
// Backward, with g_i = dl_dy_i: ds_ij = alpha_ij (dot(g_i, right_j) - dot(g_i, y_i)), and f_ij = ds_ij where z_ij > 0,
// kLeak ds_ij elsewhere, column by column:
//   dl_dleft_i = a sum_j f_ij;  dl_dright_j = mul_add(a, sum_i f_ij, sum_i alpha_ij g_i);
//   dl_da = sum_i (sum_j f_ij z_ij);  dl_dW = a sum_i (sum_e edge_e f_e), without the node itself.
// The last two of a block of rows add the sums of its rows in order, from zero. dl_dedge_ek += sum over all columns of
// (a f_e) W_k in 8 lanes, as above.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gradloom/exec/exec.h"

namespace gradloom::kernels::message {

inline constexpr double kLeak = 0.2;  // slope of leaky() below zero

template <class T>
struct Attention {
  const std::uint32_t *ptr = nullptr, *source = nullptr;                           // arcs into each node
  const std::uint32_t *out_ptr = nullptr, *out_target = nullptr, *slot = nullptr;  // the transposed matrix
  std::size_t heads = 1, channels = 1, stride = 0;  // rows of left, right, y and their gradients
  const T *left = nullptr, *right = nullptr;        // (N, H C)
  const T* a = nullptr;                             // (H C), padded
  std::size_t edge_features = 0, edge_stride = 0;   // Fe; 0: none
  const T* edge = nullptr;                          // (E, Fe)
  const T* edge_weight = nullptr;                   // W (Fe, H C), rows of `stride`
  T *alpha = nullptr, *self_alpha = nullptr;        // (E, H), (N, H)
  T* y = nullptr;
};

// Rows [begin, end) of y and alpha.
template <class T>
void attend(Variant variant, const Attention<T>& p, std::size_t begin, std::size_t end);

template <class T>
struct AttentionGradient {
  const T* dl_dy = nullptr;
  T *ds = nullptr, *self_ds = nullptr;  // (E, H), (N, H): written by attend_gradient, read by the others
  T *dl_dleft = nullptr, *dl_dright = nullptr;
  T* dl_da = nullptr;            // (H C) of this block
  T* dl_dedge_weight = nullptr;  // (Fe, H C) of this block
  T* dl_dedge = nullptr;         // (E, Fe) rows of edge_stride, +=; attend_edge_gradient alone
};
// Rows [begin, end): ds, dl_dleft, and the block's dl_da and dl_dedge_weight.
template <class T>
void attend_gradient(Variant variant, const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin,
                     std::size_t end);
// Rows [begin, end) of dl_dright, after all rows of attend_gradient.
template <class T>
void attend_source_gradient(Variant variant, const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin,
                            std::size_t end);
// dl_dedge of the arcs into rows [begin, end), after these rows of attend_gradient. Training does not ask for it: plain
// code for every variant.
template <class T>
void attend_edge_gradient(Arithmetic arithmetic, const Attention<T>& p, const AttentionGradient<T>& g,
                          std::size_t begin, std::size_t end);

// On which side of its kink every z is, as a hash; in the default arithmetic.
template <class T>
std::uint64_t attention_branches(const Attention<T>& p, std::size_t rows);

}  // namespace gradloom::kernels::message
