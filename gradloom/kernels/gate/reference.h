// The definition of the gate kernels, number by number. See gate.h. Number is float, double or Dual.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_GATE_REFERENCE_H_
#define GRADLOOM_KERNELS_GATE_REFERENCE_H_

#include <algorithm>
#include <array>
#include <span>

#include "gradloom/kernels/dual.h"
#include "gradloom/kernels/gate/gate.h"
#include "gradloom/kernels/gate/patch.h"
#include "gradloom/kernels/mul_add.h"

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/gate/reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::gate::reference::GRADLOOM_ARITHMETIC {

using kernels::GRADLOOM_ARITHMETIC::exp;
using kernels::GRADLOOM_ARITHMETIC::mul_add;

template <class Number>
Number add_lanes(std::array<Number, 16> lanes) {
  for (std::size_t half = 8; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lanes[l] = lanes[l] + lanes[l + half];
  return lanes[0];
}

// to[0], to[1] += the tree without its last step.
template <class T>
void add_partial(const std::array<T, kTile>& lanes, T* to) {
  std::array<T, kTile> sum = lanes;
  for (std::size_t half = 8; half > 1; half /= 2)
    for (std::size_t l = 0; l < half; ++l) sum[l] = sum[l] + sum[l + half];
  to[0] = to[0] + sum[0], to[1] = to[1] + sum[1];
}

template <class Number>
std::array<Number, kFunctions> softmax(const Number* z) {
  auto largest = primal(z[0]);
  for (std::size_t i = 1; i < kFunctions; ++i) largest = primal(z[i]) > largest ? primal(z[i]) : largest;
  std::array<Number, kFunctions> p;
  for (std::size_t i = 0; i < kFunctions; ++i) p[i] = exp(z[i] - Number(largest));
  const Number sum = add_lanes(p);
  for (Number& v : p) v = v / sum;
  return p;
}

template <class Number>
std::array<Number, kSums> gate_coefficients(const Number* z) {
  const std::array<Number, kFunctions> p = softmax(z);
  std::array<Number, kSums> c;
  for (std::size_t m = 0; m < kSums; ++m) {
    std::array<Number, kFunctions> terms;
    for (std::size_t i = 0; i < kFunctions; ++i) terms[i] = Number(weight(m, i)) * p[i];
    c[m] = add_lanes(terms);
  }
  return c;
}

template <class Number>
Number gate_value(const Number* c, Number a, Number b) {
  return mul_add(mul_add(c[3], a, c[2]), b, mul_add(c[1], a, c[0]));
}

template <class T>
void coefficients(std::span<const T> logits, const std::uint32_t* position, std::size_t stride, Gate<T>* gates) {
  for (std::size_t n = 0; n < logits.size() / kFunctions; ++n) {
    const auto c = gate_coefficients(logits.data() + n * kFunctions);
    for (std::size_t m = 0; m < kSums; ++m) gates[position[n * stride]].c[m] = c[m];
  }
}

template <class T>
void logit_gradient(std::span<const T> logits, const std::uint32_t* position, std::size_t stride, const T* sums,
                    GradientMode mode, T* dl_dz) {
  for (std::size_t n = 0; n < logits.size() / kFunctions; ++n) {
    const auto p = softmax(logits.data() + n * kFunctions);
    T s[kSums];
    for (std::size_t m = 0; m < kSums; ++m) {
      const T* parts = sums + position[n * stride] * kPartial + 2 * m;
      s[m] = parts[0] + parts[1];
    }
    std::array<T, kFunctions> d, terms;
    for (std::size_t i = 0; i < kFunctions; ++i) {
      d[i] = T(weight(0, i)) * s[0];
      for (std::size_t m = 1; m < kSums; ++m) d[i] = mul_add(T(weight(m, i)), s[m], d[i]);
      terms[i] = p[i] * d[i];
    }
    const T mean = add_lanes(terms);
    for (std::size_t i = 0; i < kFunctions; ++i) {
      const T g = p[i] * (d[i] - mean);
      T& to = dl_dz[n * kFunctions + i];
      to = mode == GradientMode::overwrite ? g : to + g;
    }
  }
}

// Cell by cell.
template <class T>
void forward(const Layer<T>& layer, const T* in, T* out, const Copies& copies) {
  for (std::size_t k = 0; k < copies.count; ++k) {
    const T* from = in + k * copies.in_step;
    T* to = out + k * copies.out_step;
    for (std::size_t l = 0; l < kTile; ++l)
      for (const Gate<T>& gate : layer.gates) to[gate.out + l] = gate_value(gate.c, from[gate.a + l], from[gate.b + l]);
  }
}

// By the numbers of the gates, whatever the order of evaluation is.
template <class T>
void backward(const Layer<T>& layer, const LayerGradient<T>& arrays) {
  for (std::size_t row = 0; row < layer.plan->rows; ++row)
    if (row != layer.plan->given) std::fill_n(arrays.dl_din + row * arrays.dl_din_step, kTile, -T(0));
  for (std::size_t n = layer.gates.size(); n-- > 0;) {
    const std::size_t position = layer.plan->position[n];
    const Gate<T>& gate = layer.gates[position];
    T *da = arrays.dl_din + gate.a / kTile * arrays.dl_din_step,
      *db = arrays.dl_din + gate.b / kTile * arrays.dl_din_step;
    std::array<T, kTile> g, ga, gb, gab;
    for (std::size_t l = 0; l < kTile; ++l) {
      const T a = arrays.in[gate.a + l], b = arrays.in[gate.b + l];
      g[l] = arrays.dl_dout[gate.out + l];
      ga[l] = g[l] * a, gb[l] = g[l] * b, gab[l] = ga[l] * b;
      da[l] = da[l] + mul_add(gate.c[3], gb[l], gate.c[1] * g[l]);
      db[l] = db[l] + mul_add(gate.c[3], ga[l], gate.c[2] * g[l]);
    }
    T* sums = arrays.sums + position * kPartial;
    add_partial(g, sums), add_partial(ga, sums + 2), add_partial(gb, sums + 4), add_partial(gab, sums + 6);
  }
}

// rows (C, offsets, L): the numbers at these distances from the cells, 0 in lanes without one.
template <class T>
void read_rows(const GridShape& grid, const TileCells& cells, std::span<const std::size_t> offsets, const T* state,
               T* rows) {
  for (std::size_t c = 0; c < grid.channels; ++c)
    for (const std::size_t offset : offsets)
      for (std::size_t l = 0; l < kTile; ++l)
        *rows++ = l < cells.count ? state[c * grid.channel_step() + (cells.at[l] + offset)] : T(0);
}

}  // namespace gradloom::kernels::gate::reference::GRADLOOM_ARITHMETIC

#endif
