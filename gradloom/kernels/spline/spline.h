// One layer of a spline network: y_j = b_j + sum_i ( u_ij silu(x_i) + sum_k c_ijk B_k(x_i) ), forward and backward.
//
// Letters: B samples, In inputs, Out outputs, G grid intervals, p degree, R = G + p spline rows (+ 1 base row, the
// last). InP, OutP: In, Out rounded up to kPanel = 16; OutL: Out rounded up to kLanes = 8.
//
// Layouts
//   S: samples from one input or panel to the next in memory, at least B (LayerTape::stride).
//   panel matrix (n, B): [nP/16][S][16]; element (i, s) at ((i / 16) * S + s) * 16 + i % 16. Lanes i >= n are zero.
//   weight (In, R, OutP), bias (OutP): lanes j >= Out are zero and stay zero.
//   basis values [In][S][basis_stride(p)]: the p + 1 functions that are not zero at x, from row `span` on, then zeros.
//   slopes, the same: their p + 1 derivatives B'_k; where Shape::row_differences(), instead the p factors f_k of the
//   differences between neighbouring rows: sum_k B'_k W[span+k] = sum_k f_k (W[span+k+1] - W[span+k]).
// Forward and weight_gradient compute the lanes j < OutL; results of lanes j >= OutL are zero.
//
// The order of every sum is part of the contract; each variant keeps it, so all give the same bits:
// - forward, for each output j:
//   - acc = b_j;
//   - for i = 0..In-1: for k = 0..p: acc = mul_add(B_k, W[i][span+k][j], acc); with a base the same of silu and
//   W[i][R-1][j].
// - input_gradient, for each block of kBlock = 64 outputs from j0 on, in the lanes l = 0..15 of a panel:
//   - lane l sums over j = j0 + l, j0 + 16 + l, ... < OutP;
//   - for each row r = span..span+p, and R-1 with a base: a_rl = dl_dy_j W[i][r][j] of the first j, mul_add of the next
//   ones;
//   - t_l = B'_0 a_rl of the first row; t_l = mul_add(B'_k, a_rl, t_l) for the next ones; with a base silu', a_rl;
//   - where Shape::row_differences(): for r = span..span+p-1 the rounded difference d_j = W[i][r+1][j] - W[i][r][j]
//   takes the place of W[i][r][j], and f_k that of B'_k; the base row stays as it is;
//   - a tree over lanes: t_l + t_{l+8}, then +4, +2, +1;
//   - the first block is stored, the next ones are added.
// - weight_gradient: a leaf is a chunk of kChunk = 256 consecutive samples (reduce/tree_sum.h adds leaves):
//   - a row's sum starts at 0 and takes B_k dl_dy_j by mul_add, ordered by span, then by sample;
//   - the base row takes silu dl_dy_j in the same order;
//   - rows that no sample of a chunk touches are empty.
// - bias_gradient, for each chunk: the sum over samples in order, from 0; the same leaves.
// Basis functions: N_r of one degree more = mul_add(left, share, what the one before has handed over), as reference.h
// has it. f_k = N_k / h of degree p - 1, or p share_k on free knots. Outside the grid, linear: mul_add(B'_k, beyond,
// value_k); where Shape::row_differences(), B'_k is the rounded difference f_{k-1} - f_k, with f_{-1} = f_p = 0.
//
// Best sizes of ranges: 64 to 128 samples for evaluate_basis, forward and input_gradient (multiples of 8; a tile's
// activations then stay in the second-level cache), one input or more for weight_gradient.
//
// Every function here is serial, allocates nothing, and must run with subnormals flushed (Exec::parallel_for does that,
// or use FlushSubnormals). Pointers never alias. Ranges of samples or inputs may be worked on by different threads at
// once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gradloom/base/choice.h"
#include "gradloom/base/function_ref.h"
#include "gradloom/base/rounding.h"
#include "gradloom/exec/exec.h"
#include "gradloom/kernels/contract.h"
#include "gradloom/kernels/reduce/tree_sum.h"

namespace gradloom::kernels::spline {

inline constexpr std::size_t kPanel = kRowPadding;
inline constexpr std::size_t kLanes = 8;
inline constexpr std::size_t kBlock = 64;
inline constexpr std::size_t kChunk = 256;
inline constexpr std::size_t leaves(std::size_t batch) { return divide_up(batch, kChunk); }
inline constexpr unsigned kMaxDegree = 7;
inline constexpr unsigned kMaxGrid = 1024;

// What a layer does with an input outside [lo, hi].
enum class OutOfGrid : std::uint8_t {
  linear,  // continue the tangent of the edge
  clamp,   // the value of the edge, derivative zero; of the base branch, too
  extend,  // the basis on knots continued with the edge's spacing; zero beyond p intervals
  zero,    // value and derivative zero
};
inline constexpr Choice<OutOfGrid> kOutOfGrid[] = {
    {OutOfGrid::linear, "linear", "extended by the tangent at the end"},
    {OutOfGrid::clamp, "clamp", "constant, the value at the end"},
    {OutOfGrid::extend, "extend", "the splines continued with the spacing of the knots, 0 further out"},
    {OutOfGrid::zero, "zero", "zero"},
};

enum class Knots : std::uint8_t {
  uniform,  // G equal intervals over [lo_i, hi_i] of each input
  free,     // knots of each input's own
};
inline constexpr Choice<Knots> kKnots[] = {
    {Knots::uniform, "uniform", "equal intervals"},
    {Knots::free, "free", "knots of each input"},
};

struct Shape {
  std::size_t in = 1;
  std::size_t out = 1;
  unsigned grid = 5;
  unsigned degree = 3;
  bool base = true;  // the u_ij silu(x_i) branch
  bool bias = true;
  OutOfGrid outside = OutOfGrid::linear;
  Knots knots = Knots::uniform;

  std::size_t spline_rows() const { return grid + degree; }
  std::size_t rows() const { return spline_rows() + (base ? 1 : 0); }
  std::size_t in_padded() const { return padded(in); }
  std::size_t out_padded() const { return padded(out); }
  std::size_t out_lanes() const { return round_up(out, kLanes); }
  std::size_t extended_knots() const { return grid + 4 * degree + 1; }
  // Whether the gradient of the input is a sum over differences of rows. Beyond the ends of an extended grid there are
  // functions without a row, and a difference would need it.
  bool row_differences() const { return outside != OutOfGrid::extend; }
  // Rows, or differences of rows, of an input that a sample's gradient takes, without the base row.
  unsigned slopes() const { return row_differences() ? degree : degree + 1; }
};

inline constexpr std::size_t basis_stride(unsigned degree) { return degree < 4 ? 4 : 8; }

// Where the knots of a layer lie. lo, hi, inverse_step (InP): inverse_step = G / (hi - lo), in T.
// Free knots only: extended (In, G + 4p + 1), interior knot k at index 2p + k, continued outwards with the edge's
// spacing; inverse (In, p, G + 4p + 1): inverse[d-1][m] = 1 / (extended[m+d] - extended[m]), 0 where m + d is beyond
// the end.
template <class T>
struct Grid {
  const T* lo = nullptr;
  const T* hi = nullptr;
  const T* inverse_step = nullptr;
  const T* extended = nullptr;
  const T* inverse = nullptr;
};

template <class T>
struct Layer {
  Shape shape;
  Grid<T> grid;
  const T* weight = nullptr;  // (In, R, OutP)
  const T* bias = nullptr;    // (OutP), null without bias
};

// What forward keeps for backward; q = basis_stride(p).
template <class T>
struct LayerTape {
  std::size_t batch = 0;          // B
  T* x = nullptr;                 // panel matrix (In, B)
  std::uint16_t* span = nullptr;  // [In][S], 0..G-1
  T* value = nullptr;             // [In][S][q]
  T* slope = nullptr;       // [In][S][q], slopes() and zeros; null when no gradient of the input will be asked for
  T* base_value = nullptr;  // [In][S]; null without base
  T* base_slope = nullptr;  // [In][S]; null without base or slope
  std::size_t stride = 0;   // S, of the tape and of y, dl_dy, dl_dx; 0: B

  std::size_t pitch() const { return stride != 0 ? stride : batch; }
};

// The S to choose for a batch. A power of two would send all inputs of a sample to the same few sets of a cache.
inline constexpr std::size_t best_stride(std::size_t batch) { return round_up(batch, 4) + 4; }

// The sample dimension of a panel matrix: B and S.
struct SampleExtent {
  std::size_t count, stride;
  SampleExtent(std::size_t all) : count(all), stride(all) {}
  SampleExtent(std::size_t samples, std::size_t pitch) : count(samples), stride(pitch) {}
};

struct Range {
  std::size_t begin = 0, end = 0;
};

// Fills span, value, slope, base_value, base_slope of the samples from tape.x; returns how many (sample, input) pairs
// lie outside the grid (NaN counts as outside).
template <class T>
std::size_t evaluate_basis(Variant variant, const Layer<T>& layer, const LayerTape<T>& tape, Range samples);

// y: panel matrix (Out, B); the columns of `samples` are overwritten. Needs evaluate_basis of these samples.
template <class T>
void forward(Variant variant, const Layer<T>& layer, const LayerTape<T>& tape, Range samples, T* y);

// dl_dx = (not +=): panel matrix (In, B), columns of `samples`; padding lanes are set to zero. dl_dy: panel matrix
// (Out, B).
template <class T>
void input_gradient(Variant variant, const Layer<T>& layer, const LayerTape<T>& tape, const T* dl_dy, Range samples,
                    T* dl_dx);

// For small work of the caller's that the sums of a gradient can hide.
using InputHook = FunctionRef<void(std::size_t input)>;

// dl_dw (In, R, OutP): the rows of the inputs in the range, over all B samples of the tape, which are leaves(B) leaves;
// without samples an unbegun sum becomes 0. With B > 0, `each` is called once for each of these inputs, before the last
// samples are added to its sums.
template <class T>
void weight_gradient(
    Variant variant, const Shape& shape, const LayerTape<T>& tape, const T* dl_dy, Range inputs,
    const reduce::TreeSum<T>& dl_dw, InputHook each = [](std::size_t) {});

// dl_db (OutP); leaves as above.
template <class T>
void bias_gradient(Variant variant, const Shape& shape, SampleExtent batch, const T* dl_dy,
                   const reduce::TreeSum<T>& dl_db);

// Basis and forward of one sample, without a tape. x (InP), y (OutP), both contiguous.
template <class T>
void forward_single(Variant variant, const Layer<T>& layer, const T* x, T* y);

}  // namespace gradloom::kernels::spline
