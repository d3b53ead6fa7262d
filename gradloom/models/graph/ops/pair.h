// From the rows of two graphs to their similarity.
#pragma once

#include <cmath>

#include "gradloom/kernels/elementary/elementary.h"
#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

template <class T>
T softplus(T z) {
  return std::max(z, T(0)) + kernels::split::log1p(kernels::split::exp(-std::abs(z)));
}

// [ |u - v|, u + v ] for the rows u, v of the two graphs of a pair.
template <class T>
class PairFeaturesOp final : public UnaryOp<T> {
  using UnaryOp<T>::in_, Op<T>::out_;

 public:
  PairFeaturesOp(std::string name, const typename UnaryOp<T>::Fields& f)
      : UnaryOp<T>("pair_features", std::move(name), f) {}

  void forward(const Pass<T>& p) const override {
    T* y = p.output(out_);
    p.for_rows(out_, kElementwise, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        const T *u = row(p, pairs_of(p.batch).first[k]), *v = row(p, pairs_of(p.batch).second[k]);
        T* to = y + k * out_.stride;
        for (std::size_t c = 0; c < in_.width; ++c) to[c] = std::abs(u[c] - v[c]), to[in_.width + c] = u[c] + v[c];
      }
    });
  }

  // A graph owns its row and adds its pairs in ascending order.
  void backward(const Pass<T>& p) const override {
    if (!p.needed(in_)) return;
    const PairBatch<T>& batch = pairs_of(p.batch);
    const std::size_t width = in_.width, graphs = batch.graphs;
    const T* dl_dy = p.gradient(out_);
    T* dl_dx = p.target(in_);
    const std::size_t tasks = std::min(graphs, task_count(kElementwise * p.rows(out_) * width));
    p.ex.parallel_for(tasks, [&](std::size_t t, unsigned) {
      for (std::size_t g = graphs * t / tasks; g < graphs * (t + 1) / tasks; ++g) {
        T* to = dl_dx + g * in_.stride;
        std::fill_n(to, in_.stride, T(0));
        for (std::size_t e = batch.use_ptr[g]; e < batch.use_ptr[g + 1]; ++e) {
          const std::size_t k = batch.use_pair[e];
          const T *u = row(p, batch.first[k]), *v = row(p, batch.second[k]), *from = dl_dy + k * out_.stride;
          const bool first = batch.use_side[e] == 0;
          for (std::size_t c = 0; c < width; ++c) {
            const T d = first ? u[c] - v[c] : v[c] - u[c];
            const T sign = d > 0 ? from[c] : d < 0 ? -from[c] : T(0);
            to[c] = to[c] + (sign + from[width + c]);
          }
        }
      }
    });
    p.written(in_);
  }

  void branches(const Seen<T>& p, Hash& hash) const override {
    for (std::size_t k = 0; k < p.rows(out_); ++k) {
      const T *u = row(p, pairs_of(p.batch).first[k]), *v = row(p, pairs_of(p.batch).second[k]);
      for (std::size_t c = 0; c < in_.width; ++c) hash.mix(u[c] > v[c] ? 2 : u[c] < v[c] ? 1 : 0);
    }
  }

  void dual(DualPass& p) const override {
    const DualMatrix& x = p.in(in_);
    const std::size_t width = in_.width;
    p.each(out_, [&](DualNumber& y, std::size_t k, std::size_t c) {
      const DualNumber u = x[pairs_of(p.batch).first[k]][c % width], v = x[pairs_of(p.batch).second[k]][c % width];
      y = c >= width ? u + v : u > v ? u - v : v - u;
    });
  }

 private:
  const T* row(const Seen<T>& p, std::size_t graph) const { return p.value(in_) + graph * in_.stride; }
};

// exp(-softplus(z) 2 / (n_u + n_v)), n the numbers of nodes of the two graphs.
template <class T>
class SimilarityOp final : public UnaryOp<T> {
  using UnaryOp<T>::in_, Op<T>::out_;

 public:
  SimilarityOp(std::string name, const typename UnaryOp<T>::Fields& f) : UnaryOp<T>("similarity", std::move(name), f) {}

  void forward(const Pass<T>& p) const override {
    const T* z = p.value(in_);
    T* y = p.output(out_);
    p.for_rows(out_, kElementwise, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k)
        y[k * out_.stride] = kernels::split::exp(-softplus(z[k * in_.stride]) * pairs_of(p.batch).inverse_size[k]);
    });
  }

  void backward(const Pass<T>& p) const override {
    if (!p.needed(in_)) return;
    const T *z = p.value(in_), *dl_dy = p.gradient(out_);
    T* dl_dz = p.target(in_);
    p.for_rows(out_, kElementwise, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        const T s = pairs_of(p.batch).inverse_size[k], value = z[k * in_.stride];
        T* to = dl_dz + k * in_.stride;
        std::fill_n(to, in_.stride, T(0));
        *to = -dl_dy[k * out_.stride] * kernels::split::exp(-softplus(value) * s) * s * kernels::split::sigmoid(value);
      }
    });
    p.written(in_);
  }

  void dual(DualPass& p) const override {
    p.each(out_, [&](DualNumber& y, std::size_t k, std::size_t) {
      const DualNumber z = p.in(in_)[k][0];
      const DualNumber distance(std::log1p(std::exp(z.v)), z.d / (1 + std::exp(-z.v)));
      y = kernels::exp(-distance * DualNumber(pairs_of(p.batch).inverse_size[k]));
    });
  }

 private:
};

}  // namespace gradloom::graph
