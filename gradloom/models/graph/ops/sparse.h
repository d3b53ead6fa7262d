// Products of sparse features with weights.
#pragma once

#include "gradloom/models/graph/ops/dropout.h"
#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

// A product with weights (dense.h) of the sparse features of the batch, which dropout thins out first. Node tasks only.
template <class T>
class SparseOp final : public Op<T> {
  using Op<T>::out_;
  enum { kKeep, kValues };

 public:
  struct Fields {
    Tensor out;
    SliceRef weight;
    dense::Start start = dense::Start::zero;
    double dropout = 0.0;
  };
  SparseOp(std::string name, Fields f) : Op<T>("sparse", std::move(name), f.out, {}, {f.weight}), f_(std::move(f)) {}

  void reserve(Reservation<T>& r) const override {
    if (f_.dropout > 0) {
      r.template keep<std::uint8_t>(kKeep, r.most.entries);
      r.template keep<T>(kValues, r.most.entries);
    }
    if (r.limits.backward) r.share_blocks(out_, f_.weight.size);
  }

  void forward(const Pass<T>& p) const override {
    const GraphBatch<T>& batch = p.batch;
    const std::size_t first = p.part.begin(out_), last = p.part.end(out_), stride = out_.stride;
    if (p.training() && f_.dropout > 0) {
      const auto drop = dropout_of(p.step, f_.dropout, this->index(), p.step.index);
      std::uint8_t* keep = p.flags(kKeep);
      T* values = p.numbers(kValues);
      for_ranges(p.ex, batch.feature_value.size(), [&](std::size_t begin, std::size_t end) {
        drop.keep(begin, end, keep);
        rowwise::apply_dropout<T>(batch.feature_value.data(), keep, static_cast<T>(drop.scale()), begin, end, values);
      });
    }
    // A second product of the same features is added to the first one.
    T *y = p.output(out_), *to = f_.start == dense::Start::y ? p.scratch() : y;
    const message::Gather<T> g{.ptr = batch.features.ptr.data(),
                               .source = batch.features.index.data(),
                               .value = values_of(p),
                               .x = p.parameter(f_.weight),
                               .x_stride = stride,
                               .y = to,
                               .y_stride = stride,
                               .width = stride};
    p.gather(g, first, last, Hubs::feature_in);
    if (f_.start != dense::Start::y) return;
    p.for_rows(out_, kElementwise, [&](std::size_t begin, std::size_t end) {
      rowwise::add<T>({begin, end, out_.width, stride}, to, y);
    });
  }

  void backward(const Pass<T>& p) const override {
    if (!p.trains(f_.weight)) return;
    // Every column of the features owns a row of the gradient.
    const bool fresh = p.tree.leaf == 0;
    T* to = fresh ? p.sum_of(f_.weight).root : p.blocks();
    const message::Gather<T> g{.ptr = p.batch.features.out_ptr.data(),
                               .source = p.batch.features.out_index.data(),
                               .slot = p.batch.features.out_slot.data(),
                               .value = values_of(p),
                               .x = p.gradient(out_),
                               .x_stride = out_.stride,
                               .y = to,
                               .y_stride = out_.stride,
                               .width = out_.stride};
    p.gather(g, 0, p.batch.feature_columns, Hubs::feature_out);
    p.finish(f_.weight, fresh ? nullptr : to);
  }

  void dual(DualPass& p) const override {
    const GraphBatch<double>& batch = p.batch;
    const bool dropping = p.step.mode == Mode::train && f_.dropout > 0;
    const auto drop = dropout_of(p.step, f_.dropout, this->index(), p.step.index);
    std::vector<std::uint8_t> keep(batch.feature_value.size());
    drop.keep(0, keep.size(), keep.data());
    p.each(
        out_,
        [&](DualNumber& y, std::size_t i, std::size_t c) {
          for (std::size_t e = batch.features.ptr[i]; e < batch.features.ptr[i + 1]; ++e)
            if (!dropping || keep[e])
              y += DualNumber(batch.feature_value[e] * (dropping ? drop.scale() : 1.0)) *
                   p.parameter(f_.weight, batch.features.index[e], c);
        },
        f_.start);
  }

 private:
  const T* values_of(const Pass<T>& p) const {
    return p.trained() && f_.dropout > 0 ? p.numbers(kValues) : p.batch.feature_value.data();
  }

  const Fields f_;
};

}  // namespace gradloom::graph
