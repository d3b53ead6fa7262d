// Sums over neighbours, and over the features of arcs.
#pragma once

#include <cmath>

#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

// What a node's row or its messages are multiplied with, d arcs in: 1, 1 / sqrt(d + 1), 1 / (d + 1), 1 / d.
enum class NodeScale { one, root, with_self, without };

template <class T>
const T* scale_of(NodeScale scale, const GraphBatch<T>& batch) {
  return scale == NodeScale::root        ? batch.root.data()
         : scale == NodeScale::with_self ? batch.with_self.data()
         : scale == NodeScale::without   ? batch.without.data()
                                         : nullptr;
}

inline DualNumber dual_scale(NodeScale s, const GraphBatch<double>& batch, std::size_t i) {
  const double d = batch.arcs.ptr[i + 1] - batch.arcs.ptr[i];
  return DualNumber(s == NodeScale::root        ? 1 / std::sqrt(d + 1)
                    : s == NodeScale::with_self ? 1 / (d + 1)
                    : s == NodeScale::without   ? (d > 0 ? 1 / d : 0)
                                                : 1);
}

template <class T>
const T* edge_weights(const GraphBatch<T>& batch) {
  return batch.edge_weight.empty() ? nullptr : batch.edge_weight.data();
}

// Sums over neighbours (message.h): out_i = row_i ((self + epsilon) source_i in_i + sum_j w source_j in_j).
template <class T>
class GatherOp final : public SmallSumsOp<T> {
  using Op<T>::out_;
  using SmallSumsOp<T>::kSums;

 public:
  struct Fields {
    Tensor in, out;
    NodeScale row = NodeScale::one, source = NodeScale::one;
    double self = 0.0;
    SliceRef epsilon;
  };
  GatherOp(std::string name, Fields f)
      : SmallSumsOp<T>("gather", std::move(name), f.out, {{f.in}}, {f.epsilon}), f_(std::move(f)) {
    this->gives_rows_ = true;
  }

  OpCost cost() const override { return {.arc = 1}; }

  void forward(const Pass<T>& p) const override {
    auto g = gather_of(p);
    g.y = p.output(out_), g.y_stride = out_.stride;
    p.gather(g, p.part.begin(out_), p.part.end(out_), Hubs::in,
             [&](std::size_t begin, std::size_t end) { this->next_rows(p, begin, end); });
  }

  void backward(const Pass<T>& p) const override {
    const std::size_t first = p.part.begin(out_), last = p.part.end(out_), stride = out_.stride;
    const T* dl_dy = p.gradient(out_);
    const auto forward = gather_of(p);
    if (p.edges && forward.value)
      p.for_arcs(out_, forward.ptr, kGathered, [&](std::size_t begin, std::size_t end) {
        message::value_gradient<T>(p.ex.arithmetic(), forward, dl_dy, stride, begin, end, message::Onto::add,
                                   p.edge_weight_gradient());
      });
    if (p.needed(f_.in)) {
      auto g = forward;
      const SparsePattern& arcs = p.batch.arcs;
      g.ptr = arcs.out_ptr.data(), g.source = arcs.out_index.data(), g.slot = arcs.out_slot.data();
      std::swap(g.row_scale, g.source_scale);
      g.x = dl_dy, g.y = p.target(f_.in), g.y_stride = stride;
      p.gather(g, first, last, Hubs::out);
      p.written(f_.in);
    }
    if (!p.trains(f_.epsilon)) return;
    p.for_sums(out_, p.numbers(kSums), this->sum_size(), [&](T* to, std::size_t begin, std::size_t end) {
      T sum = 0;
      for (std::size_t i = begin; i < end; ++i)
        sum = sum + message::dot8(p.ex.arithmetic(), dl_dy + i * stride, forward.x + i * stride, stride);
      *to = sum;
    });
    this->finish_sums(p);
  }

  void dual(DualPass& p) const override {
    const DualMatrix& x = p.in(f_.in);
    DualNumber self(f_.self);
    if (f_.epsilon) self += p.parameter(f_.epsilon, 0, 0);
    p.each(out_, [&](DualNumber& y, std::size_t i, std::size_t c) {
      DualNumber sum = self * dual_scale(f_.source, p.batch, i) * x[i][c];
      for (std::size_t e = p.batch.arcs.ptr[i]; e < p.batch.arcs.ptr[i + 1]; ++e) {
        const std::size_t j = p.batch.arcs.index[e];
        sum += p.edge_weight(e) * dual_scale(f_.source, p.batch, j) * x[j][c];
      }
      y = dual_scale(f_.row, p.batch, i) * sum;
    });
  }

 private:
  message::Gather<T> gather_of(const Pass<T>& p) const {
    const T self = static_cast<T>(f_.self);
    return {.ptr = p.batch.arcs.ptr.data(),
            .source = p.batch.arcs.index.data(),
            .value = edge_weights(p.batch),
            .source_scale = scale_of(f_.source, p.batch),
            .row_scale = scale_of(f_.row, p.batch),
            .self = f_.epsilon ? self + *p.parameter(f_.epsilon) : self,
            .x = p.value(f_.in),
            .x_stride = out_.stride,
            .width = out_.stride};
  }

  const Fields f_;
};

// The features of the arcs into a node, summed: out_i = row_i sum_e w f_e.
template <class T>
class EdgeGatherOp final : public Op<T> {
  using Op<T>::out_;

 public:
  struct Fields {
    Tensor out;
    NodeScale row = NodeScale::one;
  };
  EdgeGatherOp(std::string name, Fields f) : Op<T>("edge_gather", std::move(name), f.out, {}), f_(std::move(f)) {}

  void forward(const Pass<T>& p) const override {
    auto g = gather_of(p);
    g.y = p.output(out_), g.y_stride = out_.stride;
    p.gather(g, p.part.begin(out_), p.part.end(out_), Hubs::in);
  }

  // Only the gradients of edges: features of edges depend on no parameter.
  void backward(const Pass<T>& p) const override {
    if (!p.edges) return;
    const std::size_t stride = out_.stride;
    const T* dl_dy = p.gradient(out_);
    const auto g = gather_of(p);
    T *to = p.edge_feature_gradient(), *to_weight = p.edge_weight_gradient();
    p.for_arcs(out_, g.ptr, kGathered, [&](std::size_t begin, std::size_t end) {
      if (g.value)
        message::value_gradient<T>(p.ex.arithmetic(), g, dl_dy, stride, begin, end, message::Onto::add, to_weight);
      for (std::size_t i = begin; i < end; ++i)
        for (std::size_t e = g.ptr[i]; e < g.ptr[i + 1]; ++e) {
          const T factor = (g.row_scale ? g.row_scale[i] : T(1)) * g.factor(e);
          for (std::size_t c = 0; c < stride; ++c)
            to[e * stride + c] = to[e * stride + c] + factor * dl_dy[i * stride + c];
        }
    });
  }

  void dual(DualPass& p) const override {
    p.each(out_, [&](DualNumber& y, std::size_t i, std::size_t c) {
      for (std::size_t e = p.batch.arcs.ptr[i]; e < p.batch.arcs.ptr[i + 1]; ++e)
        y += dual_scale(f_.row, p.batch, i) * p.edge_weight(e) * p.edge_feature(e, c);
    });
  }

 private:
  message::Gather<T> gather_of(const Pass<T>& p) const {
    return {.ptr = p.batch.arcs.ptr.data(),
            .value = edge_weights(p.batch),
            .row_scale = scale_of(f_.row, p.batch),
            .x = p.batch.edge_x.data(),
            .x_stride = p.batch.edge_x.stride(0),
            .width = out_.stride};
  }

  const Fields f_;
};

}  // namespace gradloom::graph
