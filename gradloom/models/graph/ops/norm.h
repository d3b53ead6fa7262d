// Layer norm and batch norm.
#pragma once

#include <cmath>

#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

inline DualNumber dual_root(DualNumber x) {
  const double r = std::sqrt(x.v);
  return {r, x.d / (2 * r)};
}

struct DualMoments {
  DualNumber mean, variance;
};

// Of `count` numbers x(k).
template <class F>
DualMoments dual_moments(std::size_t count, F&& x) {
  DualMoments m;
  const DualNumber n(static_cast<double>(count));
  for (std::size_t k = 0; k < count; ++k) m.mean += x(k) / n;
  for (std::size_t k = 0; k < count; ++k) m.variance += (x(k) - m.mean) * (x(k) - m.mean) / n;
  return m;
}

inline DualNumber dual_normal(DualNumber x, const DualMoments& m) {
  return (x - m.mean) / dual_root(m.variance + DualNumber(rowwise::kNormEpsilon));
}

template <class T>
class LayerNormOp final : public SmallSumsOp<T> {
  using Op<T>::out_;
  using SmallSumsOp<T>::kSums, SmallSumsOp<T>::kFirst;
  enum { kMean = kFirst, kInverse };

 public:
  struct Fields {
    Tensor in, out;
    SliceRef gain, shift;
  };
  LayerNormOp(std::string name, Fields f)
      : SmallSumsOp<T>("layer_norm", std::move(name), f.out, {{f.in, true}}, {f.gain, f.shift}), f_(std::move(f)) {}

  void reserve(Reservation<T>& r) const override {
    r.template keep<T>(kMean, r.rows(out_));
    r.template keep<T>(kInverse, r.rows(out_));
    SmallSumsOp<T>::reserve(r);
  }

  void forward(const Pass<T>& p) const override {
    auto n = norm_of(p);
    n.y = p.output(out_);
    p.for_rows(out_, 2 * kElementwise, [&](std::size_t begin, std::size_t end) {
      rowwise::layer_norm<T>(p.ex.variant(), {begin, end, out_.width, out_.stride}, n);
    });
  }

  void backward(const Pass<T>& p) const override {
    const auto n = norm_of(p);
    const T* dl_dy = p.gradient(out_);
    T* dl_dx = p.gradient(f_.in);
    p.for_sums(out_, p.numbers(kSums), this->sum_size(), [&](T* to, std::size_t begin, std::size_t end) {
      rowwise::layer_norm_gradient<T>(p.ex.variant(), {begin, end, out_.width, out_.stride}, n, dl_dy, dl_dx, to,
                                      to + out_.stride);
    });
    this->finish_sums(p);
  }

  void dual(DualPass& p) const override {
    const DualMatrix& x = p.in(f_.in);
    std::vector<DualMoments> rows;
    for (const auto& row : x) rows.push_back(dual_moments(out_.width, [&](std::size_t c) { return row[c]; }));
    p.each(out_, [&](DualNumber& y, std::size_t i, std::size_t c) {
      y = dual_normal(x[i][c], rows[i]) * p.parameter(f_.gain, 0, c) + p.parameter(f_.shift, 0, c);
    });
  }

 private:
  rowwise::LayerNorm<T> norm_of(const Pass<T>& p) const {
    return {.x = p.value(f_.in),
            .gain = p.parameter(f_.gain),
            .shift = p.parameter(f_.shift),
            .mean = p.numbers(kMean),
            .inverse = p.numbers(kInverse)};
  }

  const Fields f_;
};

// mean, variance: buffers that follow the training batches, used in evaluation.
template <class T>
class BatchNormOp final : public Op<T> {
  using Op<T>::out_;
  enum { kMean, kInverse };

 public:
  struct Fields {
    Tensor in, out;
    SliceRef gain, shift, mean, variance;
  };
  BatchNormOp(std::string name, Fields f)
      : Op<T>("batch_norm", std::move(name), f.out, {{f.in, true}}, {f.gain, f.shift}), f_(std::move(f)) {}

  bool is_barrier() const override { return true; }
  void reserve(Reservation<T>& r) const override {
    r.template keep<T>(kMean, out_.stride);
    r.template keep<T>(kInverse, out_.stride);
    r.share_blocks(out_, 2 * out_.stride);
  }

  void forward(const Pass<T>& p) const override {
    const std::size_t stride = out_.stride;
    T *mean = p.numbers(kMean), *inverse = p.numbers(kInverse), *y = p.output(out_);
    const T epsilon = static_cast<T>(rowwise::kNormEpsilon);
    if (p.training()) {
      find_moments(p, mean, inverse);
      for (std::size_t c = 0; c < stride; ++c) inverse[c] = T(1) / std::sqrt(inverse[c] / count_of(p) + epsilon);
    } else {
      const T* flat = p.arrays.buffers.data();
      for (std::size_t c = 0; c < stride; ++c) {
        mean[c] = flat[f_.mean.offset + c];
        inverse[c] = T(1) / std::sqrt(flat[f_.variance.offset + c] + epsilon);
      }
    }
    const auto n = norm_of(p);
    p.for_rows(out_, 2 * kElementwise, [&](std::size_t begin, std::size_t end) {
      rowwise::batch_norm<T>(p.ex.variant(), {begin, end, out_.width, stride}, n, y);
    });
  }

  void backward(const Pass<T>& p) const override {
    const std::size_t rows = p.rows(out_), stride = out_.stride, both = 2 * stride;
    const auto n = norm_of(p);
    const T* dl_dy = p.gradient(out_);
    T *dl_dx = p.gradient(f_.in), *blocks = p.blocks(), *sums = p.scratch();
    for_leaves(p.ex, rows, blocks, both, [&](T* to, std::size_t begin, std::size_t end) {
      rowwise::batch_norm_sums<T>(p.ex.variant(), {begin, end, out_.width, stride}, n, dl_dy, to, to + stride);
    });
    dense::add_blocks<T>(blocks, dense::row_blocks(rows), both, 0, both, GradientMode::overwrite, sums);
    // Block 0 is used up: it holds the means from here on.
    T *mean_product = blocks, *mean_dy = blocks + stride;
    const T count = count_of(p);
    for (std::size_t c = 0; c < stride; ++c) mean_product[c] = sums[c] / count, mean_dy[c] = sums[stride + c] / count;
    p.for_rows(out_, 2 * kElementwise, [&](std::size_t begin, std::size_t end) {
      rowwise::batch_norm_gradient<T>(p.ex.variant(), {begin, end, out_.width, stride}, n, dl_dy,
                                      p.training() ? mean_dy : nullptr, mean_product, dl_dx);
    });
    if (p.trains(f_.gain)) p.finish(f_.gain, sums);
    if (p.trains(f_.shift)) p.finish(f_.shift, sums + stride);
  }

  void initialise_buffers(std::span<T> buffers) const override {
    std::fill_n(buffers.begin() + f_.variance.offset, out_.width, T(1));
  }
  // running = 0.9 running + 0.1 of the batch.
  void update_buffers(const Seen<T>& p, std::span<T> buffers) const override {
    const T *mean = p.numbers(kMean), *inverse = p.numbers(kInverse);
    const double n = static_cast<double>(p.batch.nodes);
    for (std::size_t c = 0; c < out_.width; ++c) {
      const double batch_std = 1.0 / static_cast<double>(inverse[c]);
      const double variance =
          std::max(0.0, batch_std * batch_std - rowwise::kNormEpsilon) * (n > 1 ? n / (n - 1) : 1.0);
      T &m = buffers[f_.mean.offset + c], &v = buffers[f_.variance.offset + c];
      m = static_cast<T>(0.9 * static_cast<double>(m) + 0.1 * static_cast<double>(mean[c]));
      v = static_cast<T>(0.9 * static_cast<double>(v) + 0.1 * variance);
    }
  }

  void dual(DualPass& p) const override {
    const DualMatrix& x = p.in(f_.in);
    std::vector<DualMoments> columns;
    for (std::size_t c = 0; c < out_.width; ++c)
      columns.push_back(p.step.mode == Mode::train ? dual_moments(x.size(), [&](std::size_t i) { return x[i][c]; })
                                                   : DualMoments{DualNumber(p.arrays.buffers[f_.mean.offset + c]),
                                                                 DualNumber(p.arrays.buffers[f_.variance.offset + c])});
    p.each(out_, [&](DualNumber& y, std::size_t i, std::size_t c) {
      y = dual_normal(x[i][c], columns[c]) * p.parameter(f_.gain, 0, c) + p.parameter(f_.shift, 0, c);
    });
  }

 private:
  T count_of(const Pass<T>& p) const { return static_cast<T>(std::max<std::size_t>(1, p.rows(out_))); }

  // The mean of each column, and the sum of its squared deviations.
  void find_moments(const Pass<T>& p, T* mean, T* squares) const {
    const std::size_t rows = p.rows(out_), count = dense::row_blocks(rows), stride = out_.stride;
    const T* x = p.value(f_.in);
    T* blocks = p.blocks();
    for_leaves(p.ex, rows, blocks, stride, [&](T* to, std::size_t begin, std::size_t end) {
      dense::column_sums<T>(x + begin * stride, end - begin, stride, stride, to);
    });
    dense::add_blocks<T>(blocks, count, stride, 0, stride, GradientMode::overwrite, mean);
    for (std::size_t c = 0; c < stride; ++c) mean[c] = mean[c] / count_of(p);
    for_leaves(p.ex, rows, blocks, stride, [&](T* to, std::size_t begin, std::size_t end) {
      rowwise::squared_deviation<T>(p.ex.variant(), {begin, end, out_.width, stride}, x, mean, to);
    });
    dense::add_blocks<T>(blocks, count, stride, 0, stride, GradientMode::overwrite, squares);
  }

  rowwise::BatchNorm<T> norm_of(const Pass<T>& p) const {
    return {.x = p.value(f_.in),
            .gain = p.parameter(f_.gain),
            .shift = p.parameter(f_.shift),
            .mean = p.numbers(kMean),
            .inverse = p.numbers(kInverse)};
  }

  const Fields f_;
};

}  // namespace gradloom::graph
