// Operations on trees: symbols of nodes, their neighbours, and the rows of all nodes as one.
#pragma once

#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

// 0: the root, 1: a left child, 2: a right one.
inline constexpr std::size_t kSides = 3;
template <class T>
std::size_t side_of(const TreeBatch<T>& batch, std::size_t v) {
  const std::uint32_t parent = batch.parent[v];
  return parent == kNoNode ? 0 : batch.left[parent] == v ? 1 : 2;
}

// out_v = weight[symbol of v] + weight[symbols + side of v].
template <class T>
class EmbedOp final : public SmallSumsOp<T> {
  using Op<T>::out_;
  using SmallSumsOp<T>::kSums;

 public:
  struct Fields {
    Tensor out;
    SliceRef weight;
    std::size_t symbols = 0;
  };
  EmbedOp(std::string name, Fields f)
      : SmallSumsOp<T>("embed", std::move(name), f.out, {}, {f.weight}), f_(std::move(f)) {}

  void forward(const Pass<T>& p) const override {
    const T* weight = p.parameter(f_.weight);
    T* y = p.output(out_);
    p.for_rows(out_, kElementwise, [&](std::size_t begin, std::size_t end) {
      for (std::size_t v = begin; v < end; ++v) {
        const auto [symbol, side] = rows_of(p.batch, v);
        for (std::size_t c = 0; c < out_.stride; ++c) y[v * out_.stride + c] = weight[symbol + c] + weight[side + c];
      }
    });
  }

  void backward(const Pass<T>& p) const override {
    if (!p.trains(f_.weight)) return;
    const T* dl_dy = p.gradient(out_);
    p.for_sums(out_, p.numbers(kSums), f_.weight.size, [&](T* to, std::size_t begin, std::size_t end) {
      std::fill_n(to, f_.weight.size, T(0));
      for (std::size_t v = begin; v < end; ++v) {
        const auto [symbol, side] = rows_of(p.batch, v);
        const T* from = dl_dy + v * out_.stride;
        for (std::size_t c = 0; c < out_.stride; ++c)
          to[symbol + c] = to[symbol + c] + from[c], to[side + c] = to[side + c] + from[c];
      }
    });
    this->finish_sums(p);
  }

  void dual(DualPass& p) const override {
    const TreeBatch<double>& trees = trees_of(p.batch);
    p.each(out_, [&](DualNumber& y, std::size_t v, std::size_t c) {
      y = p.parameter(f_.weight, trees.symbol[v], c) + p.parameter(f_.weight, f_.symbols + side_of(trees, v), c);
    });
  }

 private:
  struct Rows {
    std::size_t symbol, side;  // where they begin in the weight
  };
  Rows rows_of(const GraphBatch<T>& batch, std::size_t v) const {
    const TreeBatch<T>& trees = trees_of(batch);
    return {trees.symbol[v] * out_.stride, (f_.symbols + side_of(trees, v)) * out_.stride};
  }

  const Fields f_;
};

// out_v = [in_v, in_parent, in_left, in_right], zeros where there is none. The width of `in` is a multiple of 16.
template <class T>
class NeighboursOp final : public UnaryOp<T> {
  using UnaryOp<T>::in_, Op<T>::out_;

 public:
  static constexpr std::size_t kRows = 4;
  NeighboursOp(std::string name, const typename UnaryOp<T>::Fields& f) : UnaryOp<T>("neighbours", std::move(name), f) {}

  void forward(const Pass<T>& p) const override {
    const std::size_t w = in_.width;
    const T* x = p.value(in_);
    T* y = p.output(out_);
    p.for_rows(out_, kElementwise, [&](std::size_t begin, std::size_t end) {
      for (std::size_t v = begin; v < end; ++v)
        for (std::size_t k = 0; k < kRows; ++k) {
          const std::uint32_t from = neighbour(p.batch, v, k);
          T* to = y + v * out_.stride + k * w;
          from == kNoNode ? std::fill_n(to, w, T(0)) : std::copy_n(x + from * w, w, to);
        }
    });
  }

  // A node is read by itself, by its children as their parent, and by its parent as a child of one side.
  void backward(const Pass<T>& p) const override {
    if (!p.needed(in_)) return;
    const std::size_t w = in_.width;
    const TreeBatch<T>& trees = trees_of(p.batch);
    const T* dl_dy = p.gradient(out_);
    T* dl_dx = p.gradient(in_);
    p.for_rows(in_, kRows * kElementwise, [&](std::size_t begin, std::size_t end) {
      if (!p.graded(in_)) std::fill(dl_dx + begin * w, dl_dx + end * w, T(0));
      for (std::size_t v = begin; v < end; ++v) {
        const auto add = [&](std::uint32_t reader, std::size_t k) {
          if (reader == kNoNode) return;
          T* to = dl_dx + v * w;
          const T* from = dl_dy + reader * out_.stride + k * w;
          for (std::size_t c = 0; c < w; ++c) to[c] = to[c] + from[c];
        };
        add(static_cast<std::uint32_t>(v), 0);
        add(trees.left[v], 1);
        add(trees.right[v], 1);
        add(trees.parent[v], 1 + side_of(trees, v));
      }
    });
  }

  void dual(DualPass& p) const override {
    const std::size_t w = in_.width;
    p.each(out_, [&](DualNumber& y, std::size_t v, std::size_t c) {
      const std::uint32_t from = neighbour(p.batch, v, c / w);
      if (from != kNoNode) y = p.in(in_)[from][c % w];
    });
  }

 private:
  template <class U>
  static std::uint32_t neighbour(const GraphBatch<U>& batch, std::size_t v, std::size_t k) {
    const TreeBatch<U>& t = trees_of(batch);
    return k == 0 ? static_cast<std::uint32_t>(v) : k == 1 ? t.parent[v] : k == 2 ? t.left[v] : t.right[v];
  }
};

// The rows of a tree's nodes one behind the other, zeros behind the last.
template <class T>
class FlattenOp final : public UnaryOp<T> {
  using UnaryOp<T>::in_, Op<T>::out_;

 public:
  FlattenOp(std::string name, const typename UnaryOp<T>::Fields& f) : UnaryOp<T>("flatten", std::move(name), f) {}

  void forward(const Pass<T>& p) const override {
    const T* x = p.value(in_);
    T* y = p.output(out_);
    p.for_rows(out_, kElementwise, [&](std::size_t begin, std::size_t end) {
      std::fill(y + begin * out_.stride, y + end * out_.stride, T(0));
      each_node(p, begin, end,
                [&](std::size_t v, std::size_t at) { std::copy_n(x + v * in_.stride, in_.width, y + at); });
    });
  }

  void backward(const Pass<T>& p) const override {
    if (!p.needed(in_)) return;
    const T* dl_dy = p.gradient(out_);
    T* dl_dx = p.target(in_);
    p.for_rows(out_, kElementwise, [&](std::size_t begin, std::size_t end) {
      each_node(p, begin, end, [&](std::size_t v, std::size_t at) {
        T* to = dl_dx + v * in_.stride;
        std::fill_n(std::copy_n(dl_dy + at, in_.width, to), in_.stride - in_.width, T(0));
      });
    });
    p.written(in_);
  }

  void dual(DualPass& p) const override {
    p.each(out_, [&](DualNumber& y, std::size_t t, std::size_t c) {
      const std::size_t v = p.batch.graph_ptr[t] + c / in_.width;
      if (v < p.batch.graph_ptr[t + 1]) y = p.in(in_)[v][c % in_.width];
    });
  }

 private:
  // body(node, where its numbers begin in the tensor) for the nodes of trees [begin, end).
  template <class F>
  void each_node(const Pass<T>& p, std::size_t begin, std::size_t end, F&& body) const {
    for (std::size_t t = begin; t < end; ++t)
      for (std::size_t first = p.batch.graph_ptr[t], v = first; v < p.batch.graph_ptr[t + 1]; ++v)
        body(v, t * out_.stride + (v - first) * in_.width);
  }
};

}  // namespace gradloom::graph
