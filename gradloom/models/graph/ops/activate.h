// Bias, activation and residual.
#pragma once

#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

inline DualNumber dual_activation(Activation a, DualNumber x) {
  if (a == Activation::none) return x;
  if (a == Activation::relu) return x > DualNumber(0.0) ? x : DualNumber(0.0);
  return kernels::silu(x).value;
}

// out = act(in + bias) + residual; bias and residual may be none.
template <class T>
class ActivateOp final : public SmallSumsOp<T> {
  using Op<T>::out_;
  using SmallSumsOp<T>::kSums;

 public:
  struct Fields {
    Tensor in, residual, out;
    SliceRef bias;
    Activation activation = Activation::none;
  };
  ActivateOp(std::string name, Fields f)
      : SmallSumsOp<T>("activate", std::move(name), f.out, inputs_of(f), {f.bias}), f_(std::move(f)) {
    this->takes_rows_ = true;
  }

  void forward(const Pass<T>& p) const override {
    if (this->follows_) return;
    p.for_rows(out_, kElementwise, [&](std::size_t begin, std::size_t end) { run_rows(p, begin, end); });
  }

  void backward(const Pass<T>& p) const override {
    const std::size_t first = p.part.begin(out_), last = p.part.end(out_), stride = out_.stride;
    const T *x = p.value(f_.in), *bias = p.parameter(f_.bias), *dl_dy = p.gradient(out_);
    if (f_.residual && p.needed(f_.residual)) {
      T* to = p.target(f_.residual);
      std::copy(dl_dy + first * stride, dl_dy + last * stride, to + first * stride);
      p.written(f_.residual);
    }
    T* dl_dz = p.gradient(f_.in);
    const auto make_rows = [&](std::size_t begin, std::size_t end) {
      rowwise::activate_gradient<T>(p.ex.variant(), {begin, end, out_.width, stride}, f_.activation, x, bias, dl_dy,
                                    dl_dz);
    };
    if (!p.trains(f_.bias)) return p.for_rows(out_, kElementwise, make_rows);
    T* sums = p.numbers(kSums);
    if (p.whole(out_)) {
      p.column_sums(out_, dl_dz, sums, make_rows);
      return this->finish_sums(p);
    }
    p.for_rows(out_, kElementwise, make_rows);
    p.column_sums(out_, dl_dz, sums);
  }

  void branches(const Seen<T>& p, Hash& hash) const override {
    if (f_.activation != Activation::relu) return;
    // With a residual the output hides the sign; it is told by the difference.
    const T *y = p.value(out_), *residual = f_.residual ? p.value(f_.residual) : nullptr;
    for (std::size_t i = 0; i < p.rows(out_) * out_.stride; ++i)
      hash.mix((residual ? y[i] != residual[i] : y[i] > T(0)) ? 2 : 1);
  }

  void dual(DualPass& p) const override {
    p.each(out_, [&](DualNumber& y, std::size_t i, std::size_t c) {
      DualNumber z = p.in(f_.in)[i][c];
      if (f_.bias) z += p.parameter(f_.bias, 0, c);
      y = dual_activation(f_.activation, z);
      if (f_.residual) y += p.in(f_.residual)[i][c];
    });
  }

 protected:
  void run_rows(const Pass<T>& p, std::size_t begin, std::size_t end) const override {
    rowwise::activate<T>(p.ex.variant(), {begin, end, out_.width, out_.stride}, f_.activation, p.value(f_.in),
                         p.parameter(f_.bias), f_.residual ? p.value(f_.residual) : nullptr, p.output(out_));
  }

 private:
  static std::vector<OpInput> inputs_of(const Fields& f) {
    std::vector<OpInput> inputs{{f.in, true}};
    if (f.residual) inputs.push_back({f.residual});
    return inputs;
  }

  const Fields f_;
};

}  // namespace gradloom::graph
