// Products with weights.
#pragma once

#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

// out (=, or += by `start`) in W + bias. Bias only with Start::bias.
template <class T>
class DenseOp final : public Op<T> {
  using Op<T>::out_;
  enum { kTransposed, kSums, kWeightSums };
  static constexpr std::size_t kTaskRows = 12;  // of a weight that one task sums

 public:
  struct Fields {
    Tensor in, out;
    SliceRef weight, bias;
    dense::Start start = dense::Start::zero;
  };
  DenseOp(std::string name, Fields f)
      : Op<T>("dense", std::move(name), f.out, {{f.in}}, {f.weight, f.bias}), f_(std::move(f)) {
    this->gives_rows_ = true;
  }

  OpCost cost() const override { return {.row = f_.in.width}; }
  void reserve(Reservation<T>& r) const override {
    if (!r.limits.backward) return;
    r.template keep<T>(kTransposed, out_.width * f_.in.stride);
    if (f_.bias) r.keep_sums(kSums, out_, out_.stride);
    if (r.sum_by == SumBy::parts) return r.keep_sums(kWeightSums, out_, f_.weight.size);
    r.share_blocks(out_, f_.weight.size);
    if (out_.rows == RowsAre::nodes) r.largest = std::max(r.largest, f_.weight.size);
  }

  void forward(const Pass<T>& p) const override {
    p.for_rows(out_, f_.in.width, [&](std::size_t begin, std::size_t end) {
      dense::multiply<T>(p.ex.variant(), {.rows = end - begin,
                                          .inner = f_.in.width,
                                          .width = out_.stride,
                                          .x = p.value(f_.in) + begin * f_.in.stride,
                                          .x_row = f_.in.stride,
                                          .w = p.parameter(f_.weight),
                                          .w_stride = out_.stride,
                                          .bias = p.parameter(f_.bias),
                                          .y = p.output(out_) + begin * out_.stride,
                                          .y_stride = out_.stride,
                                          .start = f_.start});
      this->next_rows(p, begin, end);
    });
  }

  void prepare_backward(const Pass<T>& p) const override {
    if (!p.needed(f_.in) || !p.needed(out_)) return;
    dense::transpose<T>(p.parameter(f_.weight), f_.in.width, out_.width, out_.stride, p.numbers(kTransposed));
  }

  void backward(const Pass<T>& p) const override {
    const T* dl_dy = p.gradient(out_);
    if (p.needed(f_.in)) {
      p.for_rows(f_.in, out_.width, [&](std::size_t begin, std::size_t end) {
        dense::multiply<T>(p.ex.variant(), {.rows = end - begin,
                                            .inner = out_.width,
                                            .width = f_.in.stride,
                                            .x = dl_dy + begin * out_.stride,
                                            .x_row = out_.stride,
                                            .w = p.numbers(kTransposed),
                                            .w_stride = f_.in.stride,
                                            .y = p.gradient(f_.in) + begin * f_.in.stride,
                                            .y_stride = f_.in.stride,
                                            .start = p.graded(f_.in) ? dense::Start::y : dense::Start::zero});
      });
    }
    const bool whole = p.whole(out_);
    if ((whole || p.sum_by == SumBy::parts) && p.trains(f_.weight)) {
      T* sums = whole ? p.blocks() : p.numbers(kWeightSums);
      p.for_sums(out_, sums, f_.weight.size,
                 [&](T* to, std::size_t begin, std::size_t end) { weight_gradient(p, begin, end, all_rows(), to); });
      if (whole) p.finish_blocks(f_.weight, out_, sums, f_.weight.size);
    }
    // Rows of graphs need no sums here: each is the whole of its graph.
    if (!p.trains(f_.bias) || out_.rows == RowsAre::graphs) return;
    T* sums = p.numbers(kSums);
    p.column_sums(out_, dl_dy, sums);
    if (whole) p.finish_blocks(f_.bias, out_, sums, out_.stride);
  }

  void list_sums(std::vector<SumTask<T>>& tasks) const override {
    if (out_.rows == RowsAre::pairs) return;
    for (std::size_t k = 0; k < f_.in.width; k += kTaskRows)
      tasks.push_back({this, k, std::min(f_.in.width, k + kTaskRows)});
    if (f_.bias) tasks.push_back({this});
  }

  // The sums of large graphs wait in memory of their own.
  void sum_large_graphs(const Pass<T>& p) const override {
    if (out_.rows == RowsAre::graphs || !p.trains(f_.weight)) return;
    const std::size_t size = f_.weight.size;
    T* to = p.large();
    for (std::size_t g = 0; g < p.batch.graphs; ++g) {
      const std::size_t first = p.batch.graph_ptr[g], last = p.batch.graph_ptr[g + 1];
      const std::size_t count = dense::row_blocks(last - first, kGraphBlock);
      if (count == 1) continue;
      for_blocks(
          p.ex, last - first,
          [&](std::size_t b, std::size_t begin, std::size_t end) {
            weight_gradient(p, first + begin, first + end, all_rows(), p.blocks() + b * size);
          },
          kGraphBlock);
      for_ranges(p.ex, size, [&](std::size_t begin, std::size_t end) {
        dense::add_blocks<T>(p.blocks(), count, size, begin, end, GradientMode::overwrite, to);
      });
      to += size;
    }
  }

  void sum(const Pass<T>& p, const SumTask<T>& task, unsigned worker) const override {
    if (task.begin < task.end && p.sum_by == SumBy::parts)
      return p.fold(f_.weight, p.numbers(kWeightSums), f_.weight.size, task.begin * out_.stride, task.end * out_.stride,
                    worker);
    if (task.begin < task.end) return p.trains(f_.weight) ? sum_weight(p, task, worker) : void();
    if (out_.rows == RowsAre::nodes) return p.fold(f_.bias, p.numbers(kSums), out_.stride, worker);
    if (!p.trains(f_.bias)) return;
    T* rows = p.gradient(out_);
    p.sum_graphs(f_.bias, 0, f_.bias.size, worker, [&](std::size_t g, bool store, T* to) {
      dense::add_blocks<T>(rows + g * out_.stride, 1, out_.stride, 0, out_.stride,
                           store ? GradientMode::overwrite : GradientMode::accumulate, to);
    });
  }

  void dual(DualPass& p) const override {
    const DualMatrix& x = p.in(f_.in);
    p.each(
        out_,
        [&](DualNumber& y, std::size_t i, std::size_t c) {
          if (f_.bias) y += p.parameter(f_.bias, 0, c);
          for (std::size_t k = 0; k < x[i].size(); ++k) y += x[i][k] * p.parameter(f_.weight, k, c);
        },
        f_.start);
  }

 private:
  SumTask<T> all_rows() const { return {this, 0, f_.in.width}; }

  // x^T dl_dy of rows [begin, end), for some rows of the weight.
  void weight_gradient(const Pass<T>& p, std::size_t begin, std::size_t end, const SumTask<T>& of, T* dl_dw,
                       dense::Start start = dense::Start::zero) const {
    dense::multiply<T>(p.ex.variant(), {.rows = of.end - of.begin,
                                        .inner = end - begin,
                                        .width = out_.stride,
                                        .x = p.value(f_.in) + begin * f_.in.stride + of.begin,
                                        .x_row = 1,
                                        .x_inner = f_.in.stride,
                                        .w = p.gradient(out_) + begin * out_.stride,
                                        .w_stride = out_.stride,
                                        .y = dl_dw,
                                        .y_stride = out_.stride,
                                        .start = start});
  }

  // Rows [begin, end) of the weight, graph after graph.
  void sum_weight(const Pass<T>& p, const SumTask<T>& task, unsigned worker) const {
    const T* large = p.large();
    const std::size_t begin = task.begin * out_.stride, end = task.end * out_.stride;
    const bool rows_are_graphs = out_.rows == RowsAre::graphs;  // a graph is one row; its product is its sum
    p.sum_graphs(f_.weight, begin, end, worker, [&](std::size_t g, bool store, T* to) {
      const std::size_t first = rows_are_graphs ? g : p.batch.graph_ptr[g];
      const std::size_t last = rows_are_graphs ? g + 1 : p.batch.graph_ptr[g + 1];
      if (dense::row_blocks(last - first, kGraphBlock) == 1)
        return weight_gradient(p, first, last, task, to + begin, store ? dense::Start::zero : dense::Start::apart);
      for (std::size_t i = begin; i < end; ++i) to[i] = store ? large[i] : to[i] + large[i];
      large += f_.weight.size;
    });
  }

  const Fields f_;
};

}  // namespace gradloom::graph
