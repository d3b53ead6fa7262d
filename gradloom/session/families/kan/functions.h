// The functions on the edges of a spline network, one layer at a time.
#pragma once

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/spline/reference.h"
#include "gradloom/models/kan/network.h"

namespace gradloom {

// A network's outputs for some rows, and the values inside it.
template <class T>
struct EvaluatedRows {
  typename kan::Network<T>::Tape tape;
  Buffer<T> y;  // (rows, stride)
  std::size_t stride = 0;
};

// Of all rows of the batch at once.
template <class T>
EvaluatedRows<T> evaluate_rows(const Exec& ex, const kan::Network<T>& network, const ModelArrays<T>& arrays,
                               const RowBatch<T>& batch) {
  const std::size_t stride = padded(network.output_width());
  EvaluatedRows<T> rows{network.make_tape(ex, {.batch = batch.size, .backward = false}), Buffer<T>(batch.size * stride),
                        stride};
  network.forward(ex, {.mode = Mode::evaluate}, arrays, batch, rows.tape,
                  {rows.y.data(), {batch.size, network.output_width()}, {stride, 1}});
  return rows;
}

// The functions that leave input i of a layer, all at once.
template <class T>
class LayerFunctions {
 public:
  LayerFunctions(const kan::Network<T>& network, std::size_t l, const ModelArrays<T>& arrays)
      : layer_(network.layer(l, arrays)) {}

  const kernels::spline::Shape& shape() const { return layer_.shape; }
  double low(std::size_t i) const { return static_cast<double>(layer_.grid.lo[i]); }
  double bias(std::size_t j) const { return layer_.bias ? static_cast<double>(layer_.bias[j]) : 0.0; }
  double high(std::size_t i) const { return static_cast<double>(layer_.grid.hi[i]); }

  // out[j - from] = f_ij(x) for from <= j < until.
  void at(std::size_t i, T x, std::size_t from, std::size_t until, double* out) const {
    const kernels::spline::Shape& s = layer_.shape;
    const auto b = kernels::spline::reference::split::basis_point<T, T>(s, layer_.grid, i, x);
    const T base =
        s.base ? kernels::split::silu(kernels::spline::reference::split::base_point(s, layer_.grid, i, x)).value : T(0);
    const T* w = layer_.weight + i * s.rows() * s.out_padded();
    for (std::size_t j = from; j < until; ++j) {
      T v = 0;
      for (unsigned k = 0; k <= s.degree; ++k) v += b.value[k] * w[(b.span + k) * s.out_padded() + j];
      if (s.base) v += base * w[(s.rows() - 1) * s.out_padded() + j];
      out[j - from] = static_cast<double>(v);
    }
  }

 private:
  kernels::spline::Layer<T> layer_;
};

}  // namespace gradloom
