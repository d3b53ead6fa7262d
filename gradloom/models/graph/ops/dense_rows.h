// Some rows of a dense layer y = x W + b: the product and its two gradients (kernels/dense).
#pragma once

#include "gradloom/models/graph/rows.h"

namespace gradloom::graph {

// Widths of x and y, and how far their rows are apart; W (in, out) has rows of out_stride.
template <class T>
struct DenseRows {
  Variant variant;
  std::size_t in, in_stride, out, out_stride;

  struct Weights {
    const T* w;
    const T* bias = nullptr;
    dense::Start start = dense::Start::zero;
  };
  void forward(std::size_t rows, const T* x, const Weights& w, T* y) const {
    dense::multiply<T>(variant, {.rows = rows,
                                 .inner = in,
                                 .width = out_stride,
                                 .x = x,
                                 .x_row = in_stride,
                                 .w = w.w,
                                 .w_stride = out_stride,
                                 .bias = w.bias,
                                 .y = y,
                                 .y_stride = out_stride,
                                 .start = w.start});
  }
  // `transposed`: W by dense::transpose.
  void input_gradient(std::size_t rows, const T* dl_dy, const T* transposed, T* dl_dx,
                      dense::Start start = dense::Start::zero) const {
    dense::multiply<T>(variant, {.rows = rows,
                                 .inner = out,
                                 .width = in_stride,
                                 .x = dl_dy,
                                 .x_row = out_stride,
                                 .w = transposed,
                                 .w_stride = in_stride,
                                 .y = dl_dx,
                                 .y_stride = in_stride,
                                 .start = start});
  }
  // x^T dl_dy, rows in order.
  void weight_gradient(std::size_t rows, const T* x, const T* dl_dy, T* dl_dw) const {
    dense::multiply<T>(variant, {.rows = in,
                                 .inner = rows,
                                 .width = out_stride,
                                 .x = x,
                                 .x_row = 1,
                                 .x_inner = in_stride,
                                 .w = dl_dy,
                                 .w_stride = out_stride,
                                 .y = dl_dw,
                                 .y_stride = out_stride});
  }
};

}  // namespace gradloom::graph
