// Sums over the neighbours of a node, and what their gradients need: gathers over a sparse matrix in rows.
//
// Letters: N rows; E arcs; F width, a multiple of 16. Row i has arcs ptr[i] .. ptr[i+1]-1. The sum of a row is
//   y_i = r_i ( self s_i x_i + sum over arcs e of (v_e s_j) x_j ),  j = source[e],
// where r, s, v default to 1 and a missing self term is 0. Backward is the same sum over the transposed matrix with r
// and s exchanged, and v read through `slot`; a product of sparse features and weights is one too (x = weights), and so
// is its dl_dw. Each row has one owner and no row is written while it is read.
//
// Order of sums: (self s_i) x_i first, if self is not 0; then the arcs in order, each by mul_add. The arcs of
// a row with more than kSegment of them are cut into segments of kSegment: the first begins with the self term, the
// others with zero, and the segments are added in order. r_i comes last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gradloom/base/rounding.h"
#include "gradloom/exec/exec.h"

namespace gradloom::kernels::message {

inline constexpr std::size_t kSegment = 512;

template <class T>
struct Gather {
  const std::uint32_t* ptr = nullptr;     // (N + 1)
  const std::uint32_t* source = nullptr;  // (E); null: arc e reads row e
  const std::uint32_t* slot = nullptr;    // (E): where the value of an arc stands; null: at the arc's own place
  const T* value = nullptr;               // (E), by slot; null: 1
  const T* source_scale = nullptr;        // s; null: 1
  const T* row_scale = nullptr;           // r (N); null: 1
  T self = 0;
  const T* x = nullptr;
  std::size_t x_stride = 0;
  T* y = nullptr;  // overwritten
  std::size_t y_stride = 0;
  std::size_t width = 0;  // F

  // The factor of arc e.
  T factor(std::size_t e) const {
    T w = value ? value[slot ? slot[e] : e] : T(1);
    if (source_scale) w = w * source_scale[source ? source[e] : e];
    return w;
  }
};

// Rows [begin, end). Rows with more than kSegment arcs are left alone: they are hubs.
template <class T>
void gather_rows(Variant variant, const Gather<T>& g, std::size_t begin, std::size_t end);

// One segment of a hub, into `sum` (F), without r.
template <class T>
void gather_segment(Variant variant, const Gather<T>& g, std::size_t row, std::size_t segment, T* sum);

// y of a hub from the sums of its segments (segments, F).
template <class T>
void finish_hub(const Gather<T>& g, std::size_t row, const T* sums);

inline std::size_t hub_segments(const std::uint32_t* ptr, std::size_t row) {
  const std::size_t arcs = ptr[row + 1] - ptr[row];
  return arcs > kSegment ? divide_up(arcs, kSegment) : 0;
}

// The gradient of the arcs' values of rows [begin, end), by slot: dl_dv_e (=, or += when `add`) (r_i s_j) dot(dl_dy_i,
// x_j). The dot product runs over 8 lanes, f mod 8, in order from zero by mul_add; the lanes are added as a tree, +4,
// +2, +1.
enum class Onto { overwrite, add };
template <class T>
void value_gradient(Arithmetic arithmetic, const Gather<T>& forward, const T* dl_dy, std::size_t dl_dy_stride,
                    std::size_t begin, std::size_t end, Onto onto, T* dl_dv);

template <class T>
T dot8(Arithmetic arithmetic, const T* a, const T* b, std::size_t width);

// The largest of the neighbours, column by column: y_i = max_j x_j, winner the first arc that has it; 0 and kNobody for
// rows without arcs. Rows [begin, end); y and winner have rows of `stride`; width is a multiple of 16.
inline constexpr std::uint32_t kNobody = 0xffffffffu;
template <class T>
struct Maximum {
  const std::uint32_t *ptr = nullptr, *source = nullptr;
  const T* x = nullptr;
  std::size_t x_stride = 0, width = 0, stride = 0;
  T* y = nullptr;
  std::uint32_t* winner = nullptr;
};
template <class T>
void max_rows(Variant variant, const Maximum<T>& m, std::size_t begin, std::size_t end);

// dl_dx_j += sum over the arcs out of j, in order, of dl_dy_i where the arc won. out_ptr, target, slot: the transposed
// matrix. Rows [begin, end) of dl_dx.
template <class T>
struct MaximumGradient {
  const std::uint32_t *out_ptr = nullptr, *target = nullptr, *slot = nullptr, *winner = nullptr;
  const T* dl_dy = nullptr;  // like winner: (N, F), rows of `stride`
  std::size_t stride = 0, width = 0;
  T* dl_dx = nullptr;
  std::size_t dl_dx_stride = 0;
};
template <class T>
void max_gradient_rows(Variant variant, const MaximumGradient<T>& m, std::size_t begin, std::size_t end);

// Rows [0, n) from ptr[0] on cut into `tasks` parts of about equal arcs + rows; part t is [bound(t), bound(t + 1)). Any
// cut gives the same bits.
std::size_t row_bound(const std::uint32_t* ptr, std::size_t n, std::size_t tasks, std::size_t t);

}  // namespace gradloom::kernels::message
