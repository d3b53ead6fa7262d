// Dropout.
#pragma once

#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

// What an operation keeps in a step: of graph `sample` of the data set, or, in node tasks, of batch `sample` of the
// epoch.
inline rowwise::Dropout dropout_of(const Step& step, double probability, std::size_t op, std::uint32_t sample) {
  return {probability, step.seed, step.epoch, static_cast<std::uint32_t>(sample * 256 + op)};
}

// Which numbers are kept is drawn for each graph of the data set, or, in node tasks, for each batch of the epoch.
template <class T>
class DropoutOp final : public Op<T> {
  using Op<T>::out_;
  enum { kKeep };

 public:
  struct Fields {
    Tensor in, out;
    double probability = 0.0;
  };
  DropoutOp(std::string name, Fields f) : Op<T>("dropout", std::move(name), f.out, {{f.in}}), f_(std::move(f)) {}

  void reserve(Reservation<T>& r) const override { r.template keep<std::uint8_t>(kKeep, r.rows(out_) * out_.stride); }

  void forward(const Pass<T>& p) const override {
    const T* x = p.value(f_.in);
    T* y = p.output(out_);
    const std::size_t stride = out_.stride;
    if (!p.training()) {
      std::copy(x + p.part.begin(out_) * stride, x + p.part.end(out_) * stride, y + p.part.begin(out_) * stride);
      return;
    }
    std::uint8_t* keep = p.flags(kKeep);
    each_sample(p, p.part.first_graph, p.part.last_graph,
                [&](const rowwise::Dropout& drop, std::size_t begin, std::size_t end) {
                  const std::size_t at = begin * stride;
                  for_ranges(p.ex, (end - begin) * stride, [&](std::size_t from, std::size_t to) {
                    drop.keep(from, to, keep + at);
                    rowwise::apply_dropout<T>(x + at, keep + at, static_cast<T>(drop.scale()), from, to, y + at);
                  });
                });
  }

  void backward(const Pass<T>& p) const override {
    if (!p.needed(f_.in)) return;
    const std::size_t stride = out_.stride;
    const T* dl_dy = p.gradient(out_);
    T* to = p.target(f_.in);
    const std::uint8_t* keep = p.flags(kKeep);
    const T scale = static_cast<T>(dropout_of(p.step, f_.probability, this->index(), 0).scale());
    p.for_rows(out_, kElementwise, [&](std::size_t begin, std::size_t end) {
      if (p.trained())
        rowwise::apply_dropout<T>(dl_dy, keep, scale, begin * stride, end * stride, to);
      else
        std::copy(dl_dy + begin * stride, dl_dy + end * stride, to + begin * stride);
    });
    p.written(f_.in);
  }

  void dual(DualPass& p) const override {
    const DualMatrix& x = p.in(f_.in);
    std::vector<std::uint8_t> keep(p.rows(out_) * out_.stride, 1);
    DualNumber scale(1.0);
    if (p.step.mode == Mode::train)
      each_sample(p, 0, p.batch.graphs, [&](const rowwise::Dropout& drop, std::size_t begin, std::size_t end) {
        drop.keep(0, (end - begin) * out_.stride, keep.data() + begin * out_.stride);
        scale = DualNumber(drop.scale());
      });
    p.each(out_, [&](DualNumber& y, std::size_t i, std::size_t c) {
      y = keep[i * out_.stride + c] ? scale * x[i][c] : DualNumber(0.0);
    });
  }

 private:
  // body(drop, begin, end) for the rows of each graph: every graph draws for itself, so it does not matter which others
  // are in its batch. In node tasks all rows at once.
  template <class P, class F>
  void each_sample(const P& p, std::size_t first, std::size_t last, F&& body) const {
    const auto drop = [&](std::uint32_t sample) { return dropout_of(p.step, f_.probability, this->index(), sample); };
    if (p.sum_by == SumBy::rows) return body(drop(p.step.index), 0, p.batch.nodes);
    for (std::size_t g = first; g < last; ++g)
      if (out_.rows == RowsAre::graphs)
        body(drop(p.batch.sample_of(g)), g, g + 1);
      else
        body(drop(p.batch.sample_of(g)), p.batch.graph_ptr[g], p.batch.graph_ptr[g + 1]);
  }

  const Fields f_;
};

}  // namespace gradloom::graph
