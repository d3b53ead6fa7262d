// Sinkhorn's iteration in logarithms, and its backward pass: the part of the soft edit distance (docs/math/ged.md) that
// takes its time.
//
// Letters: R rows of C columns, without padding; K costs; s sharpness, 1 / temperature; f (R) and g (C) log scalings.
// Rows sum to 1, the last one to exp(log_row); columns to 1, the last one to exp(log_column).
//
// With e_ij(a) = exp(a - s K_ij), by neg_mul_add (contract.h): sums over the columns of a row run in 8 lanes
// (reduce/lanes.h), those over the rows of a column in order from zero. A sum of exponentials is taken relative to the
// largest exponent, and that one is added to the logarithm.
#pragma once

#include <cstddef>

#include "gradloom/exec/exec.h"

namespace gradloom::kernels::sinkhorn {

template <class T>
struct Costs {
  std::size_t rows = 0, columns = 0;
  const T* k = nullptr;  // (R, C)
  T sharpness = 1, log_row = 0, log_column = 0;

  T row_sum(std::size_t i) const { return i + 1 < rows ? T(0) : log_row; }
  T column_sum(std::size_t j) const { return j + 1 < columns ? T(0) : log_column; }
};

// f_i = log of what row i sums to - log sum_j e_ij(g_j).
template <class T>
void scale_rows(Variant variant, const Costs<T>& c, const T* g, T* f);
// g_j = log of what column j sums to - log sum_i e_ij(f_i).
template <class T>
void scale_columns(Variant variant, const Costs<T>& c, const T* f, T* g);
// p_ij = e_ij(f_i + g_j).
template <class T>
void matching(Variant variant, const Costs<T>& c, const T* f, const T* g, T* p);

// df_i -= sum_j w_ij, dk_ij = mul_add(s, w_ij, dk_ij), with w_ij = e_ij((f_i + g_j) - log of column j) dg_j.
template <class T>
void scale_columns_gradient(Variant variant, const Costs<T>& c, const T* f, const T* g, const T* dg, T* df, T* dk);
// dg_j = - sum_i v_ij, dk_ij = mul_add(s, v_ij, dk_ij), with v_ij = e_ij((f_i + g_j) - log of row i) df_i.
template <class T>
void scale_rows_gradient(Variant variant, const Costs<T>& c, const T* f, const T* g, const T* df, T* dg, T* dk);

}  // namespace gradloom::kernels::sinkhorn
