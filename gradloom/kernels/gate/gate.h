// Layers of soft logic gates on tiles of 16 cells (or samples): coefficients, forward, backward.
//
// Letters: N gates of a layer; R rows of its input; L = kTile = 16 lanes. A signal is a row of L numbers, one per cell;
// rows follow each other without gaps (those of dl_din need not). Lanes never mix, except in the four sums of a gate.
// Lanes without a cell hold zeros in the inputs and in dl_dout, and add nothing.
//
// A gate mixes the 16 functions of two bits, in the order of their truth tables (bit 3 of the number is f(0,0), bit 2
// f(0,1), bit 1 f(1,0), bit 0 f(1,1)), by p = softmax(z). Every relaxation is bilinear, so four numbers remain
// (docs/math/logic.md):
//   y = (c0 + c1 a) + (c2 + c3 a) b = mul_add(mul_add(c3, a, c2), b, mul_add(c1, a, c0)).
//
// Order of sums. Over the 16 functions of a gate: a tree, +8, +4, +2, +1. Over the 16 lanes of a tile: the same tree
// without its last step, so two numbers remain of each sum. These are kept apart over tiles, channels and steps; the
// last step, +1, is the first of `logit_gradient`. Within `backward` gates come from last to first by their number;
// each adds to the row of a, then to that of b. Rows that are not given start with -0, to which any number can be added
// without changing it. What a gate adds to a row is rounded first.
//
// Gates stand in memory in the order of evaluation (plan.h). The order of terms can be seen only in rows of three terms
// or more, a given start counted (x + y is y + x); the gates that read those keep the order of their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gradloom/exec/exec.h"
#include "gradloom/kernels/gate/plan.h"
#include "gradloom/kernels/gradient_mode.h"

namespace gradloom::kernels::gate {

inline constexpr std::size_t kTile = 16;       // cells of a tile
inline constexpr std::size_t kFunctions = 16;  // logits of a gate
inline constexpr std::size_t kSums = 4;        // coefficients of a gate, and sums that its gradient needs
inline constexpr std::size_t kPartial = 8;     // numbers that hold these sums: (4, 2)

// What function i of the mixture adds to coefficient m, per unit of its probability.
constexpr int weight(std::size_t m, std::size_t i) {
  const int f00 = i >> 3 & 1, f01 = i >> 2 & 1, f10 = i >> 1 & 1, f11 = i & 1;
  return m == 0 ? f00 : m == 1 ? f10 - f00 : m == 2 ? f01 - f00 : f11 - f10 - f01 + f00;
}

// One gate, ready to run. a, b and out are offsets in numbers, not bytes: row * kTile.
template <class T>
struct Gate {
  std::uint32_t a = 0, b = 0, out = 0;
  T c[kSums] = {};
};

// Fills a, b and out of `to` (N, in the order of evaluation); leaves the coefficients alone. Gate n writes row n.
template <class T>
void place_gates(std::span<const GateRows> gates, const LayerPlan& plan, Gate<T>* to);

// A layer that is ready to run: its gates in the order of evaluation, and the plan by which they were placed, never
// null.
template <class T>
struct Layer {
  std::span<const Gate<T>> gates;
  const LayerPlan* plan = nullptr;
};

// logits (n, 16) of the gates position[0], position[stride], ..., n of them, whose coefficients are filled; their rows
// are left alone.
// p_i = exp(z_i - max z) / sum; c_m = sum_i weight(m, i) p_i.
template <class T>
void coefficients(Variant variant, std::span<const T> logits, const std::uint32_t* position, std::size_t stride,
                  Gate<T>* gates);

// logits (n, 16) of the gates position[0], position[stride], ...; sums (4, 2) of each gate, at sums + 8 * its position;
// dl_dz (n, 16), = or += by mode.
// s_m = sums_m0 + sums_m1; d_i = w_0i s_0, then d_i = mul_add(w_mi, s_m, d_i) for m = 1, 2, 3; dl_dz_i = p_i (d_i -
// sum_j p_j d_j).
template <class T>
void logit_gradient(Variant variant, std::span<const T> logits, const std::uint32_t* position, std::size_t stride,
                    const T* sums, GradientMode mode, T* dl_dz);

// The same gates on several inputs, which share the loads of their coefficients: copy k reads in + k * in_step and
// writes out + k * out_step.
struct Copies {
  std::size_t count = 1, in_step = 0, out_step = 0;
};

// in (R, L) and out (N, L) of each copy; out is overwritten and overlaps nothing.
template <class T>
void forward(Variant variant, const Layer<T>& layer, const T* in, T* out, const Copies& copies = {});

// The arrays of one layer's backward pass; none overlap.
template <class T>
struct LayerGradient {
  const T* in = nullptr;       // (R, L), as in forward
  const T* dl_dout = nullptr;  // (N, L)
  // R rows of L: da = mul_add(c3, g b, c1 g), db = mul_add(c3, g a, c2 g). += in the plan's given row, = in all others;
  // rows that nobody reads become -0, and others may come out as -0, too.
  T* dl_din = nullptr;
  T* sums = nullptr;                // (N, 4, 2) in the order of evaluation, +=: the tile's sums of g, g a, g b, (g a) b
  std::size_t dl_din_step = kTile;  // from a row of dl_din to the next, at least L; what lies between is left alone
};
template <class T>
void backward(Variant variant, const Layer<T>& layer, const LayerGradient<T>& arrays);

}  // namespace gradloom::kernels::gate
