// From the rows of two graphs to their similarity.
#pragma once

#include <cmath>

#include "gradloom/kernels/elementary/elementary.h"
#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

template <class T>
T softplus(T z) {
  return std::max(z, T(0)) + kernels::log1p(kernels::exp(-std::abs(z)));
}

// [ |u - v|, u + v ] for the rows u, v of the two graphs of a pair.
template <class T>
class PairFeaturesOp final : public Op<T> {
  using Op<T>::out_;

 public:
  struct Fields {
    Tensor in, out;
  };
  PairFeaturesOp(std::string name, Fields f)
      : Op<T>("pair_features", std::move(name), f.out, {{f.in}}), f_(std::move(f)) {}

  void forward(const Pass<T>& p) const override {
    T* y = p.output(out_);
    p.for_rows(out_, kPlain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        const T *u = row(p, p.pairs->first[k]), *v = row(p, p.pairs->second[k]);
        T* to = y + k * out_.stride;
        for (std::size_t c = 0; c < f_.in.width; ++c) to[c] = std::abs(u[c] - v[c]), to[f_.in.width + c] = u[c] + v[c];
      }
    });
  }

  // A graph owns its row and adds its pairs in ascending order.
  void backward(const Pass<T>& p) const override {
    if (!p.needed(f_.in)) return;
    const PairBatch<T>& batch = *p.pairs;
    const std::size_t width = f_.in.width, graphs = batch.graphs;
    const T* dl_dy = p.gradient(out_);
    T* dl_dx = p.target(f_.in);
    const std::size_t tasks = std::min(graphs, task_count(kPlain * p.rows(out_) * width));
    p.ex.parallel_for(tasks, [&](std::size_t t, unsigned) {
      for (std::size_t g = graphs * t / tasks; g < graphs * (t + 1) / tasks; ++g) {
        T* to = dl_dx + g * f_.in.stride;
        std::fill_n(to, f_.in.stride, T(0));
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
    p.written(f_.in);
  }

  void branches(const Seen<T>& p, Hash& hash) const override {
    for (std::size_t k = 0; k < p.rows(out_); ++k) {
      const T *u = row(p, p.pairs->first[k]), *v = row(p, p.pairs->second[k]);
      for (std::size_t c = 0; c < f_.in.width; ++c) hash.mix(u[c] > v[c] ? 2 : u[c] < v[c] ? 1 : 0);
    }
  }

  void dual(DualPass& p) const override {
    const DualMatrix& x = p.in(f_.in);
    const std::size_t width = f_.in.width;
    p.each(out_, [&](DualNumber& y, std::size_t k, std::size_t c) {
      const DualNumber u = x[p.pairs->first[k]][c % width], v = x[p.pairs->second[k]][c % width];
      y = c >= width ? u + v : u > v ? u - v : v - u;
    });
  }

 private:
  const T* row(const Seen<T>& p, std::size_t graph) const { return p.value(f_.in) + graph * f_.in.stride; }

  const Fields f_;
};

// exp(-softplus(z) 2 / (n_u + n_v)), n the numbers of nodes of the two graphs.
template <class T>
class SimilarityOp final : public Op<T> {
  using Op<T>::out_;

 public:
  struct Fields {
    Tensor in, out;
  };
  SimilarityOp(std::string name, Fields f) : Op<T>("similarity", std::move(name), f.out, {{f.in}}), f_(std::move(f)) {}

  void forward(const Pass<T>& p) const override {
    const T* z = p.value(f_.in);
    T* y = p.output(out_);
    p.for_rows(out_, kPlain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k)
        y[k * out_.stride] = kernels::exp(-softplus(z[k * f_.in.stride]) * p.pairs->inverse_size[k]);
    });
  }

  void backward(const Pass<T>& p) const override {
    if (!p.needed(f_.in)) return;
    const T *z = p.value(f_.in), *dl_dy = p.gradient(out_);
    T* dl_dz = p.target(f_.in);
    p.for_rows(out_, kPlain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        const T s = p.pairs->inverse_size[k], value = z[k * f_.in.stride];
        T* to = dl_dz + k * f_.in.stride;
        std::fill_n(to, f_.in.stride, T(0));
        *to = -dl_dy[k * out_.stride] * kernels::exp(-softplus(value) * s) * s * kernels::sigmoid(value);
      }
    });
    p.written(f_.in);
  }

  void dual(DualPass& p) const override {
    p.each(out_, [&](DualNumber& y, std::size_t k, std::size_t) {
      const DualNumber z = p.in(f_.in)[k][0];
      const DualNumber distance(std::log1p(std::exp(z.v)), z.d / (1 + std::exp(-z.v)));
      y = kernels::exp(-distance * DualNumber(p.pairs->inverse_size[k]));
    });
  }

 private:
  const Fields f_;
};

}  // namespace gradloom::graph
