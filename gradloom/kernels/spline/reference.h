// The definition of the spline kernels: plain loops over one scalar type, which may be a Dual. See spline.h for
// contracts.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_SPLINE_REFERENCE_H_
#define GRADLOOM_KERNELS_SPLINE_REFERENCE_H_

#include <algorithm>
#include <array>
#include <cmath>

#include "gradloom/kernels/dual.h"
#include "gradloom/kernels/mul_add.h"
#include "gradloom/kernels/spline/spline.h"

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/spline/reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::spline::reference::GRADLOOM_ARITHMETIC {

using kernels::GRADLOOM_ARITHMETIC::mul_add;
using kernels::GRADLOOM_ARITHMETIC::silu;

// The p + 1 basis functions at one point: values of the rows span..span+p, and first derivatives, or the factors of the
// differences of these rows (Shape::row_differences()), then zeros.
template <class T>
struct BasisPoint {
  unsigned span = 0;
  bool outside = false;
  std::array<T, kMaxDegree + 1> value{};
  std::array<T, kMaxDegree + 1> slope{};
};

// Cox and de Boor's recursion on unit spacing: `t` in [0, 1] is the place inside the interval, `inverse_step` 1 / h.
// Divisions by the degree are multiplications with a rounded constant.
template <class T>
void uniform_basis(const Shape& shape, T t, T inverse_step, BasisPoint<T>& out) {
  const unsigned p = shape.degree;
  auto& n = out.value;
  n[0] = T(1);
  for (unsigned d = 1; d <= p; ++d) {
    if (d == p && shape.row_differences()) {  // n holds degree p - 1
      for (unsigned k = 0; k < p; ++k) out.slope[k] = n[k] * inverse_step;
    } else if (d == p) {  // the slopes are differences of these
      out.slope[0] = -n[0] * inverse_step;
      for (unsigned k = 1; k < p; ++k) out.slope[k] = (n[k - 1] - n[k]) * inverse_step;
      out.slope[p] = n[p - 1] * inverse_step;
    }
    const T inverse_degree = T(1) / T(static_cast<int>(d));
    T saved = T(0);
    for (unsigned r = 0; r < d; ++r) {
      const T share = n[r] * inverse_degree;
      const T left = T(static_cast<int>(r + 1)) - t;
      n[r] = r == 0 ? left * share : mul_add(left, share, saved);
      saved = (r + 1 == d ? t : t + T(static_cast<int>(d - 1 - r))) * share;
    }
    n[d] = saved;
  }
}

// The same on free knots. `knots` and `inverse` belong to one input; knots[left] <= x <= knots[left+1].
template <class T, class K>
void free_basis(const Shape& shape, std::size_t left, T x, const K* knots, const K* inverse, BasisPoint<T>& out) {
  const unsigned p = shape.degree;
  auto& n = out.value;
  n[0] = T(1);
  for (unsigned d = 1; d <= p; ++d) {
    const K* inverse_d = inverse + (d - 1) * shape.extended_knots();
    std::array<T, kMaxDegree + 1> share;
    for (unsigned r = 0; r < d; ++r) share[r] = n[r] * T(inverse_d[left + 1 + r - d]);
    if (d == p) {
      const T degree = T(static_cast<int>(p));
      if (shape.row_differences()) {
        for (unsigned k = 0; k < p; ++k) out.slope[k] = share[k] * degree;
      } else {
        out.slope[0] = -share[0] * degree;
        for (unsigned k = 1; k < p; ++k) out.slope[k] = (share[k - 1] - share[k]) * degree;
        out.slope[p] = share[p - 1] * degree;
      }
    }
    T saved = T(0);
    for (unsigned r = 0; r < d; ++r) {
      n[r] = mul_add(T(knots[left + 1 + r]) - x, share[r], saved);
      saved = (x - T(knots[left + 1 + r - d])) * share[r];
    }
    n[d] = saved;
  }
}

// `extend` outside the grid: interval `interval` (relative to lo) is not one of the G, so the functions that exist are
// moved to the rows of the nearest span.
template <class T>
void shift_to_grid(const Shape& shape, long interval, BasisPoint<T>& out) {
  const long p = shape.degree, last = static_cast<long>(shape.grid) - 1;
  const long span = std::clamp(interval, 0l, last), shift = span - interval;
  const auto value = out.value, slope = out.slope;
  for (long k = 0; k <= p; ++k) {
    const long from = k + shift;
    const bool exists = from >= 0 && from <= p;
    out.value[k] = exists ? value[from] : T(0);
    out.slope[k] = exists ? slope[from] : T(0);
  }
  out.span = static_cast<unsigned>(span);
}

// K is the scalar of the knots, T that of x (they differ when x is a Dual).
template <class T, class K>
BasisPoint<T> basis_point(const Shape& shape, const Grid<K>& grid, std::size_t i, T x) {
  const unsigned p = shape.degree;
  const long last = static_cast<long>(shape.grid) - 1;
  const K lo = grid.lo[i], hi = grid.hi[i], px = primal(x);
  const bool below = !(px >= lo), above = px > hi;
  BasisPoint<T> out;
  out.outside = below || above;

  if (shape.outside == OutOfGrid::extend) {
    long interval = 0;
    if (shape.knots == Knots::uniform) {
      const T u = (x - T(lo)) * T(grid.inverse_step[i]);
      const K reach = static_cast<K>(p) + 1;
      const K floor_u = std::floor(std::clamp(primal(u), -reach, static_cast<K>(shape.grid) + reach));
      if (!(floor_u >= -static_cast<K>(p) && floor_u < static_cast<K>(shape.grid + p))) return out;
      interval = static_cast<long>(floor_u);
      uniform_basis(shape, u - T(floor_u), T(grid.inverse_step[i]), out);
    } else {
      const K* knots = grid.extended + i * shape.extended_knots();
      // knots[p] .. knots[G + 3p] bound the p intervals on each side.
      if (!(px >= knots[p] && px < knots[shape.grid + 3 * p])) return out;
      const auto left =
          static_cast<std::size_t>(std::upper_bound(knots + p, knots + shape.grid + 3 * p, px) - knots - 1);
      interval = static_cast<long>(left) - 2 * static_cast<long>(p);
      free_basis(shape, left, x, knots, grid.inverse + i * p * shape.extended_knots(), out);
    }
    shift_to_grid(shape, interval, out);
    return out;
  }

  const T inside = below ? T(lo) : above ? T(hi) : x;
  if (shape.knots == Knots::uniform) {
    const T u = (inside - T(lo)) * T(grid.inverse_step[i]);
    const long span = std::clamp(static_cast<long>(std::floor(primal(u))), 0l, last);
    out.span = static_cast<unsigned>(span);
    uniform_basis(shape, u - T(static_cast<int>(span)), T(grid.inverse_step[i]), out);
  } else {
    const K* knots = grid.extended + i * shape.extended_knots();
    const K* first = knots + 2 * p;
    const long span = std::clamp(
        static_cast<long>(std::upper_bound(first, first + shape.grid + 1, primal(inside)) - first) - 1, 0l, last);
    out.span = static_cast<unsigned>(span);
    free_basis(shape, 2 * p + static_cast<std::size_t>(span), inside, knots,
               grid.inverse + i * p * shape.extended_knots(), out);
  }
  if (!out.outside) return out;
  if (shape.outside == OutOfGrid::linear) {
    const T beyond = x - inside;
    for (unsigned k = 0; k <= p; ++k) {
      T slope = out.slope[k];
      if (shape.row_differences()) slope = (k > 0 ? out.slope[k - 1] : T(0)) - slope;
      out.value[k] = mul_add(slope, beyond, out.value[k]);
    }
  } else {
    out.slope.fill(T(0));
    if (shape.outside == OutOfGrid::zero) out.value.fill(T(0));
  }
  return out;
}

// Where the base branch is evaluated: with `clamp` at the edge, when x lies beyond one (NaN does not).
template <class T, class K>
T base_point(const Shape& shape, const Grid<K>& grid, std::size_t i, T x) {
  if (shape.outside != OutOfGrid::clamp) return x;
  const K lo = grid.lo[i], hi = grid.hi[i], px = primal(x);
  return px < lo ? T(lo) : px > hi ? T(hi) : x;
}

template <class T>
std::size_t panel_index(std::size_t stride, std::size_t i, std::size_t s) {
  return ((i / kPanel) * stride + s) * kPanel + i % kPanel;
}

// One (input, sample); returns whether it lies outside the grid.
template <class T>
bool evaluate_point(const Layer<T>& layer, const LayerTape<T>& tape, std::size_t i, std::size_t s) {
  const Shape& shape = layer.shape;
  const std::size_t q = basis_stride(shape.degree), at = i * tape.pitch() + s;
  const T x = tape.x[panel_index<T>(tape.pitch(), i, s)];
  const BasisPoint<T> b = basis_point(shape, layer.grid, i, x);
  tape.span[at] = static_cast<std::uint16_t>(b.span);
  for (unsigned k = 0; k < q; ++k) tape.value[at * q + k] = b.value[k];
  if (tape.slope)
    for (unsigned k = 0; k < q; ++k) tape.slope[at * q + k] = b.slope[k];
  if (shape.base) {
    const T inside = base_point(shape, layer.grid, i, x);
    const auto base = silu(inside);
    tape.base_value[at] = base.value;
    if (tape.base_slope)
      tape.base_slope[at] = primal(inside) < primal(x) || primal(inside) > primal(x) ? T(0) : base.slope;
  }
  return b.outside;
}

template <class T>
std::size_t evaluate_basis(const Layer<T>& layer, const LayerTape<T>& tape, Range samples) {
  std::size_t outside = 0;
  for (std::size_t i = 0; i < layer.shape.in; ++i)
    for (std::size_t s = samples.begin; s < samples.end; ++s) outside += evaluate_point(layer, tape, i, s);
  return outside;
}

template <class T>
void forward(const Layer<T>& layer, const LayerTape<T>& tape, Range samples, T* y) {
  const Shape& shape = layer.shape;
  const std::size_t q = basis_stride(shape.degree), stride = tape.pitch(), out = shape.out_padded(),
                    rows = shape.rows();
  for (std::size_t s = samples.begin; s < samples.end; ++s) {
    for (std::size_t j = 0; j < out; ++j) {
      T& result = y[panel_index<T>(stride, j, s)];
      result = T(0);
      if (j >= shape.out_lanes()) continue;
      T acc = layer.bias ? layer.bias[j] : T(0);
      for (std::size_t i = 0; i < shape.in; ++i) {
        const std::size_t at = i * stride + s;
        const T* w = layer.weight + i * rows * out + j;
        for (unsigned k = 0; k <= shape.degree; ++k)
          acc = mul_add(tape.value[at * q + k], w[(tape.span[at] + k) * out], acc);
        if (shape.base) acc = mul_add(tape.base_value[at], w[(rows - 1) * out], acc);
      }
      result = acc;
    }
  }
}

// What a block of outputs, from `first` on, adds to dl_dx of one (input, sample).
template <class T>
T input_gradient_block(const Layer<T>& layer, const LayerTape<T>& tape, const T* dl_dy, std::size_t i, std::size_t s,
                       std::size_t first) {
  const Shape& shape = layer.shape;
  const std::size_t q = basis_stride(shape.degree), stride = tape.pitch(), out = shape.out_padded(),
                    rows = shape.rows();
  const std::size_t at = i * stride + s, last = std::min(first + kBlock, out);
  std::array<T, kPanel> total{};
  const T* weight = layer.weight + i * rows * out;
  const auto add_row = [&](const auto& row, T factor, bool start) GRADLOOM_ARITHMETIC_ATTR {
    for (std::size_t l = 0; l < kPanel; ++l) {
      T sum = dl_dy[panel_index<T>(stride, first + l, s)] * row(first + l);
      for (std::size_t j = first + l + kPanel; j < last; j += kPanel)
        sum = mul_add(dl_dy[panel_index<T>(stride, j, s)], row(j), sum);
      total[l] = start ? factor * sum : mul_add(factor, sum, total[l]);
    }
  };
  for (unsigned k = 0; k < shape.slopes(); ++k) {
    const T* w = weight + (tape.span[at] + k) * out;
    const auto row = [&](std::size_t j)
                         GRADLOOM_ARITHMETIC_ATTR { return shape.row_differences() ? w[out + j] - w[j] : w[j]; };
    add_row(row, tape.slope[at * q + k], k == 0);
  }
  const auto base_row = [&](std::size_t j) GRADLOOM_ARITHMETIC_ATTR { return weight[(rows - 1) * out + j]; };
  if (shape.base) add_row(base_row, tape.base_slope[at], false);
  for (std::size_t half = kPanel / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) total[l] = total[l] + total[l + half];
  return total[0];
}

template <class T>
void input_gradient(const Layer<T>& layer, const LayerTape<T>& tape, const T* dl_dy, Range samples, T* dl_dx) {
  const Shape& shape = layer.shape;
  for (std::size_t s = samples.begin; s < samples.end; ++s) {
    for (std::size_t i = 0; i < shape.in_padded(); ++i) {
      T& result = dl_dx[panel_index<T>(tape.pitch(), i, s)];
      result = T(0);
      for (std::size_t first = 0; i < shape.in && first < shape.out; first += kBlock) {
        const T sum = input_gradient_block(layer, tape, dl_dy, i, s, first);
        result = first == 0 ? sum : result + sum;
      }
    }
  }
}

template <class T>
void weight_gradient(const Shape& shape, const LayerTape<T>& tape, const T* dl_dy, Range inputs,
                     const reduce::TreeSum<T>& dl_dw, InputHook each) {
  const std::size_t q = basis_stride(shape.degree), batch = tape.batch, stride = tape.pitch(), out = shape.out_padded(),
                    rows = shape.rows();
  for (std::size_t i = inputs.begin; i < inputs.end; ++i) {
    const reduce::TreeSum<T> sum = dl_dw.at(i * rows * out);
    if (sum.leaf + leaves(batch) == 0) std::fill_n(sum.root, rows * out, T(0));
    if (batch > 0) each(i);
    for (std::size_t first = 0; first < batch; first += kChunk) {
      const std::size_t last = std::min(first + kChunk, batch), leaf = sum.leaf + first / kChunk;
      const reduce::LeafPlace place = reduce::place_of(leaf);
      T* gradient = sum.level(place.level);
      if (place.store) std::fill_n(gradient, rows * out, sum.nothing(leaf));
      for (std::size_t r = 0; r < rows; ++r) {
        const bool base_row = shape.base && r == rows - 1;
        for (std::size_t j = 0; j < shape.out_lanes(); ++j) {
          T acc = T(0);
          bool touched = false;
          for (unsigned span = 0; span < shape.grid; ++span) {
            if (!base_row && (r < span || r > span + shape.degree)) continue;
            for (std::size_t s = first; s < last; ++s) {
              const std::size_t at = i * stride + s;
              if (tape.span[at] != span) continue;
              const T factor = base_row ? tape.base_value[at] : tape.value[at * q + (r - span)];
              acc = mul_add(factor, dl_dy[panel_index<T>(stride, j, s)], acc);
              touched = true;
            }
          }
          if (!touched) continue;
          T& g = gradient[r * out + j];
          g = place.store ? acc : g + acc;
        }
      }
      reduce::merge_levels(sum, leaf, 0, rows * out);
    }
    if (sum.complete) reduce::finish_levels(sum, sum.leaf + leaves(batch), 0, rows * out);
  }
}

template <class T>
void bias_gradient(const Shape& shape, SampleExtent batch, const T* dl_dy, const reduce::TreeSum<T>& dl_db) {
  const std::size_t all = dl_db.leaf + leaves(batch.count);
  for (std::size_t j = 0; j < shape.out_padded(); ++j) {
    if (all == 0) dl_db.root[j] = T(0);
    for (std::size_t first = 0; first < batch.count; first += kChunk) {
      T acc = T(0);
      for (std::size_t s = first; s < std::min(first + kChunk, batch.count); ++s)
        acc = acc + dl_dy[panel_index<T>(batch.stride, j, s)];
      reduce::add_leaf(dl_db.at(j), dl_db.leaf + first / kChunk, &acc, 0, 1);
    }
    if (dl_db.complete) reduce::finish_levels(dl_db, all, j, j + 1);
  }
}

template <class T>
void forward_single(const Layer<T>& layer, const T* x, T* y) {
  const Shape& shape = layer.shape;
  const std::size_t out = shape.out_padded(), lanes = shape.out_lanes(), rows = shape.rows();
  for (std::size_t j = 0; j < out; ++j) y[j] = layer.bias && j < lanes ? layer.bias[j] : T(0);
  for (std::size_t i = 0; i < shape.in; ++i) {
    const BasisPoint<T> b = basis_point(shape, layer.grid, i, x[i]);
    const T* w = layer.weight + i * rows * out;
    for (unsigned k = 0; k <= shape.degree; ++k)
      for (std::size_t j = 0; j < lanes; ++j) y[j] = mul_add(b.value[k], w[(b.span + k) * out + j], y[j]);
    if (!shape.base) continue;
    const T base = silu(base_point(shape, layer.grid, i, x[i])).value;
    for (std::size_t j = 0; j < lanes; ++j) y[j] = mul_add(base, w[(rows - 1) * out + j], y[j]);
  }
}

}  // namespace gradloom::kernels::spline::reference::GRADLOOM_ARITHMETIC

#endif
