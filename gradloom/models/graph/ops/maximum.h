// Maxima over neighbours, and over tensors.
#pragma once

#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

// An operation that keeps who won each number of its output.
template <class T>
class WinnerOp : public Op<T> {
 protected:
  using Op<T>::Op, Op<T>::out_;
  enum { kWinner };

 public:
  void reserve(Reservation<T>& r) const override {
    r.template keep<std::uint32_t>(kWinner, r.rows(out_) * out_.stride);
  }
  void branches(const Seen<T>& p, Hash& hash) const override {
    const std::uint32_t* winner = p.indices(kWinner);
    for (std::size_t i = 0; i < p.rows(out_) * out_.stride; ++i) hash.mix(winner[i]);
  }
};

// The largest of the neighbours, column by column.
template <class T>
class MaximumOp final : public WinnerOp<T> {
  using WinnerOp<T>::out_, WinnerOp<T>::kWinner;

 public:
  struct Fields {
    Tensor in, out;
  };
  MaximumOp(std::string name, Fields f) : WinnerOp<T>("maximum", std::move(name), f.out, {{f.in}}), f_(std::move(f)) {}

  OpCost cost() const override { return {.arc = 1}; }
  void forward(const Pass<T>& p) const override {
    const std::size_t stride = out_.stride;
    const message::Maximum<T> m{.ptr = p.batch.arcs.ptr.data(),
                                .source = p.batch.arcs.index.data(),
                                .x = p.value(f_.in),
                                .x_stride = stride,
                                .width = stride,
                                .stride = stride,
                                .y = p.output(out_),
                                .winner = p.indices(kWinner)};
    p.for_arcs(out_, m.ptr, kGathered,
               [&](std::size_t begin, std::size_t end) { message::max_rows<T>(p.ex.variant(), m, begin, end); });
  }

  void backward(const Pass<T>& p) const override {
    if (!p.needed(f_.in)) return;
    const std::size_t stride = out_.stride;
    const SparsePattern& arcs = p.batch.arcs;
    const message::MaximumGradient<T> m{.out_ptr = arcs.out_ptr.data(),
                                        .target = arcs.out_index.data(),
                                        .slot = arcs.out_slot.data(),
                                        .winner = p.indices(kWinner),
                                        .dl_dy = p.gradient(out_),
                                        .stride = stride,
                                        .width = stride,
                                        .dl_dx = p.target(f_.in),
                                        .dl_dx_stride = stride};
    p.for_arcs(out_, m.out_ptr, kGathered, [&](std::size_t begin, std::size_t end) {
      std::fill(m.dl_dx + begin * stride, m.dl_dx + end * stride, T(0));
      message::max_gradient_rows<T>(p.ex.variant(), m, begin, end);
    });
    p.written(f_.in);
  }

  void dual(DualPass& p) const override {
    const DualMatrix& x = p.in(f_.in);
    p.each(out_, [&](DualNumber& y, std::size_t i, std::size_t c) {
      for (std::size_t e = p.batch.arcs.ptr[i]; e < p.batch.arcs.ptr[i + 1]; ++e) {
        const DualNumber v = x[p.batch.arcs.index[e]][c];
        if (e == p.batch.arcs.ptr[i] || v > y) y = v;
      }
    });
  }

 private:
  const Fields f_;
};

// The largest of several tensors, number by number.
template <class T>
class JumpOp final : public WinnerOp<T> {
  using WinnerOp<T>::out_, WinnerOp<T>::kWinner;

 public:
  struct Fields {
    std::vector<Tensor> ins;
    Tensor out;
  };
  JumpOp(std::string name, Fields f)
      : WinnerOp<T>("jump", std::move(name), f.out, std::vector<OpInput>(f.ins.begin(), f.ins.end())),
        f_(std::move(f)) {}

  void forward(const Pass<T>& p) const override {
    std::uint32_t* winner = p.indices(kWinner);
    T* y = p.output(out_);
    p.for_rows(out_, kElementwise, [&](std::size_t first, std::size_t last) {
      for (std::size_t k = 0; k < f_.ins.size(); ++k) {
        const T* x = p.value(f_.ins[k]);
        for (std::size_t i = first * out_.stride; i < last * out_.stride; ++i) {
          const bool wins = k == 0 || x[i] > y[i];
          y[i] = wins ? x[i] : y[i];
          winner[i] = wins ? static_cast<std::uint32_t>(k) : winner[i];
        }
      }
    });
  }

  void backward(const Pass<T>& p) const override {
    const std::uint32_t* winner = p.indices(kWinner);
    const T* dl_dy = p.gradient(out_);
    const std::size_t stride = out_.stride;
    for (std::size_t k = 0; k < f_.ins.size(); ++k) {
      if (!p.needed(f_.ins[k])) continue;
      T* to = p.target(f_.ins[k]);
      p.for_rows(out_, kElementwise, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin * stride; i < end * stride; ++i) to[i] = winner[i] == k ? dl_dy[i] : T(0);
      });
      p.written(f_.ins[k]);
    }
  }

  void dual(DualPass& p) const override {
    p.each(out_, [&](DualNumber& y, std::size_t i, std::size_t c) {
      y = p.in(f_.ins.front())[i][c];
      for (const Tensor& t : f_.ins) y = p.in(t)[i][c] > y ? p.in(t)[i][c] : y;
    });
  }

 private:
  const Fields f_;
};

}  // namespace gradloom::graph
