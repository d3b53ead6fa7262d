// Products with weights.
#pragma once

#include "gradloom/models/graph/ops/dense_rows.h"
#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

// out (=, or += by `start`) in W + bias. Bias only with Start::bias.
template <class T>
class DenseOp final : public Op<T> {
  using Op<T>::out_;
  enum { kTransposed, kSums };
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
    r.share_blocks(out_, f_.weight.size);
    if (out_.rows == RowsAre::nodes) r.largest = std::max(r.largest, f_.weight.size);
  }

  void forward(const Pass<T>& p) const override {
    const T* x = p.value(f_.in);
    T* y = p.output(out_);
    const DenseRows<T> rows = dense_rows(p);
    const typename DenseRows<T>::Weights w{p.parameter(f_.weight), p.parameter(f_.bias), f_.start};
    p.for_rows(out_, f_.in.width, [&](std::size_t begin, std::size_t end) {
      rows.forward(end - begin, x + begin * f_.in.stride, w, y + begin * out_.stride);
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
      T* dl_dx = p.gradient(f_.in);
      const DenseRows<T> rows = dense_rows(p);
      const T* transposed = p.numbers(kTransposed);
      const dense::Start start = p.graded(f_.in) ? dense::Start::y : dense::Start::zero;
      p.for_rows(f_.in, out_.width, [&](std::size_t begin, std::size_t end) {
        rows.input_gradient(end - begin, dl_dy + begin * out_.stride, transposed, dl_dx + begin * f_.in.stride, start);
      });
    }
    if (p.whole(out_) && p.trains(f_.weight)) {
      block_products(p, 0, p.rows(out_), dense::kBlock);
      p.finish_blocks(f_.weight, out_, p.blocks(), f_.weight.size);
    }
    // Rows of graphs need no sums here: each is the whole of its graph.
    if (!p.trains(f_.bias) || out_.rows == RowsAre::graphs) return;
    T* sums = p.numbers(kSums);
    p.column_sums(out_, dl_dy, sums);
    if (p.whole(out_)) p.finish_blocks(f_.bias, out_, sums, out_.stride);
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
      block_products(p, first, last, kGraphBlock);
      for_ranges(p.ex, size, [&](std::size_t begin, std::size_t end) {
        dense::add_blocks<T>(p.blocks(), count, size, begin, end, GradientMode::overwrite, to);
      });
      to += size;
    }
  }

  void sum(const Pass<T>& p, const SumTask<T>& task, unsigned worker) const override {
    if (task.begin < task.end) return p.trains(f_.weight) ? sum_weight(p, task, worker) : void();
    if (out_.rows == RowsAre::nodes) return p.fold(f_.bias, p.numbers(kSums), out_.stride, worker);
    if (!p.trains(f_.bias)) return;
    T *rows = p.gradient(out_), *to = p.gradient(f_.bias);
    if (p.batch.graphs == 0 && p.step.gradient == GradientMode::overwrite) std::fill_n(to, out_.stride, T(0));
    for (std::size_t g = 0; g < p.batch.graphs; ++g)
      dense::add_blocks<T>(rows + g * out_.stride, 1, out_.stride, 0, out_.stride, p.mode_of(g), to);
    p.tell(f_.bias, 0, f_.bias.size, worker);
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
  DenseRows<T> dense_rows(const Pass<T>& p) const {
    return {p.ex.variant(), f_.in.width, f_.in.stride, out_.width, out_.stride};
  }

  // x^T dl_dy of each block of rows [first, last), one after the other in blocks().
  void block_products(const Pass<T>& p, std::size_t first, std::size_t last, std::size_t least) const {
    const T *x = p.value(f_.in) + first * f_.in.stride, *dl_dy = p.gradient(out_) + first * out_.stride;
    const DenseRows<T> rows = dense_rows(p);
    for_blocks(
        p.ex, last - first,
        [&](std::size_t b, std::size_t begin, std::size_t end) {
          rows.weight_gradient(end - begin, x + begin * f_.in.stride, dl_dy + begin * out_.stride,
                               p.blocks() + b * f_.weight.size);
        },
        least);
  }

  // Rows [begin, end) of the weight, graph after graph.
  void sum_weight(const Pass<T>& p, const SumTask<T>& task, unsigned worker) const {
    const T *x = p.value(f_.in), *dl_dy = p.gradient(out_), *large = p.large();
    const std::size_t at = task.begin * out_.stride, size = (task.end - task.begin) * out_.stride;
    T* to = p.gradient(f_.weight) + at;
    const auto add_rows = [&](std::size_t first, std::size_t last, dense::Start start) {
      dense::multiply<T>(p.ex.variant(), {.rows = task.end - task.begin,
                                          .inner = last - first,
                                          .width = out_.stride,
                                          .x = x + first * f_.in.stride + task.begin,
                                          .x_row = 1,
                                          .x_inner = f_.in.stride,
                                          .w = dl_dy + first * out_.stride,
                                          .w_stride = out_.stride,
                                          .y = to,
                                          .y_stride = out_.stride,
                                          .start = start});
    };
    const std::size_t graphs = p.batch.graphs;
    const bool fresh = p.step.gradient == GradientMode::overwrite;
    if (out_.rows == RowsAre::graphs || graphs == 0) {  // a graph is one row; its product is its sum
      add_rows(0, graphs, fresh ? dense::Start::zero : dense::Start::y);
    } else {
      for (std::size_t g = 0; g < graphs; ++g) {
        const std::size_t first = p.batch.graph_ptr[g], last = p.batch.graph_ptr[g + 1];
        const bool alone = fresh && g == 0;
        if (dense::row_blocks(last - first, kGraphBlock) == 1) {
          add_rows(first, last, alone ? dense::Start::zero : dense::Start::apart);
          continue;
        }
        for (std::size_t i = 0; i < size; ++i) to[i] = alone ? large[at + i] : to[i] + large[at + i];
        large += f_.weight.size;
      }
    }
    p.tell(f_.weight, at, at + size, worker);
  }

  const Fields f_;
};

}  // namespace gradloom::graph
