// Dense products on small matrices: y = x w + bias, and the two gradients, which are the same product of other
// operands.
//
// Letters: R rows; K inner; F width, a multiple of 16 (columns beyond the logical width are padding; they hold zeros in
// w and bias, and so in y). Order of sums: y(r, f) starts from zero, from bias(f), or from what y held; then x(r, k)
// w(k, f) is added by mul_add for k = 0 .. K-1. With Start::apart the sum from zero is added to what y held at the end.
//
//   forward   y      = x w           inner: inputs;         x (N, In), w (In, Out)
//   dl_dx            = dl_dy w^T     inner: outputs;        w is transposed before (transpose())
//   dl_dw            = x^T dl_dy     inner: rows of a block; x is read with x_row = 1, x_inner = its row stride
//
// Sums over many rows (dl_dw, dl_db, statistics) are cut into row_blocks(N): each block starts from zero, and the
// blocks are added pairwise, 0+1, 2+3, ..., then these, until one is left. A leaf of this tree
// (reduce/tree_sum.h) is kLeafRows rows, and a block is an aligned range of leaves.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "gradloom/base/rounding.h"
#include "gradloom/exec/exec.h"
#include "gradloom/kernels/gradient_mode.h"

namespace gradloom::kernels::dense {

inline constexpr std::size_t kPad = kRowPadding;
using gradloom::padded;

enum class Start { zero, bias, y, apart };  // what a sum begins with

// Nothing overlaps y. x(r, k) is x[r * x_row + k * x_inner].
template <class T>
struct Product {
  std::size_t rows = 0, inner = 0, width = 0;
  const T* x = nullptr;
  std::size_t x_row = 0, x_inner = 1;
  const T* w = nullptr;  // (K, F)
  std::size_t w_stride = 0;
  const T* bias = nullptr;  // (F), for Start::bias
  T* y = nullptr;           // (R, F)
  std::size_t y_stride = 0;
  Start start = Start::zero;
};
template <class T>
void multiply(Variant variant, const Product<T>& p);

// to (columns, padded(rows)) = from (rows, columns) transposed; from has rows of `stride`. Padding becomes zero.
template <class T>
void transpose(const T* from, std::size_t rows, std::size_t columns, std::size_t stride, T* to);

// How rows are cut for sums over all of them: blocks of at least `least` rows, at most 64 blocks;
// with kBlock, of block_leaves(n) leaves. Functions of n alone.
inline constexpr std::size_t kBlock = 128, kLeafRows = 256;
inline constexpr std::size_t block_leaves(std::size_t n) {
  return std::bit_ceil(std::max<std::size_t>(1, divide_up(divide_up(n, kLeafRows), 64)));
}
inline constexpr std::size_t block_rows(std::size_t n, std::size_t least = kBlock) {
  if (least == kBlock) return kLeafRows * block_leaves(n);
  return std::max<std::size_t>(least, round_up(divide_up(n, 64), 8));
}
inline constexpr std::size_t row_blocks(std::size_t n, std::size_t least = kBlock) {
  return n == 0 ? 1 : (n + block_rows(n, least) - 1) / block_rows(n, least);
}

// sums(f) = sum of x(r, f) over r in order, from zero.
template <class T>
void column_sums(const T* x, std::size_t rows, std::size_t width, std::size_t stride, T* sums);

// Adds `blocks` arrays of `size` elements, one after the other in `partials`, in the tree above, for elements
// [begin, end); writes or adds the result to `to`. The partials are used up.
template <class T>
void add_blocks(T* partials, std::size_t blocks, std::size_t size, std::size_t begin, std::size_t end,
                GradientMode mode, T* to);

}  // namespace gradloom::kernels::dense
