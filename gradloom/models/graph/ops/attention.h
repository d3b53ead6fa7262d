// Attention over the neighbours of a node (GATv2).
#pragma once

#include <cmath>

#include "gradloom/kernels/message/attention.h"
#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

inline DualNumber dual_leaky(DualNumber x) { return x > DualNumber(0.0) ? x : DualNumber(message::kLeak) * x; }

// GATv2 (attention.h): attention over the neighbours and the node itself.
template <class T>
class AttentionOp final : public SmallSumsOp<T> {
  using Op<T>::out_;
  using SmallSumsOp<T>::kSums, SmallSumsOp<T>::kFirst;
  enum { kAlpha = kFirst, kSelfAlpha, kScoreGradient, kSelfScoreGradient };

 public:
  struct Fields {
    Tensor left, right, out;
    std::size_t heads = 1, edge_features = 0;
    SliceRef weight, edge_weight;
  };
  AttentionOp(std::string name, Fields f)
      : SmallSumsOp<T>("attention", std::move(name), f.out, {{f.left, true}, {f.right, true}},
                       {f.weight, f.edge_weight}),
        f_(std::move(f)) {}

  OpCost cost() const override { return {.arc = 8}; }

  void reserve(Reservation<T>& r) const override {
    r.template keep<T>(kAlpha, r.most.arcs * f_.heads);
    r.template keep<T>(kSelfAlpha, r.rows(out_) * f_.heads);
    if (!r.limits.backward) return;
    r.template keep<T>(kScoreGradient, r.most.arcs * f_.heads);
    r.template keep<T>(kSelfScoreGradient, r.rows(out_) * f_.heads);
    SmallSumsOp<T>::reserve(r);
  }

  void forward(const Pass<T>& p) const override {
    const auto a = attention_of(p);
    p.for_arcs(out_, a.ptr, 4 * kGathered,
               [&](std::size_t begin, std::size_t end) { message::attend<T>(p.ex.variant(), a, begin, end); });
  }

  void backward(const Pass<T>& p) const override {
    const auto a = attention_of(p);
    const message::AttentionGradient<T> g{
        .dl_dy = p.gradient(out_),
        .ds = p.numbers(kScoreGradient),
        .self_ds = p.numbers(kSelfScoreGradient),
        .dl_dleft = p.gradient(f_.left),
        .dl_dright = p.gradient(f_.right),
        .dl_dedge = p.edges && f_.edge_features > 0 ? p.edge_feature_gradient() : nullptr};
    p.for_sums(out_, p.numbers(kSums), this->sum_size(), [&](T* to, std::size_t begin, std::size_t end) {
      auto some = g;
      some.dl_da = to, some.dl_dedge_weight = some.dl_da + out_.stride;
      message::attend_gradient<T>(p.ex.variant(), a, some, begin, end);
      if (g.dl_dedge) message::attend_edge_gradient<T>(p.ex.arithmetic(), a, g, begin, end);
    });
    p.for_arcs(out_, a.out_ptr, 4 * kGathered, [&](std::size_t begin, std::size_t end) {
      message::attend_source_gradient<T>(p.ex.variant(), a, g, begin, end);
    });
    this->finish_sums(p);
  }

  void branches(const Seen<T>& p, Hash& hash) const override {
    hash.mix(message::attention_branches<T>(scores_of(p), p.batch.nodes));
  }

  void dual(DualPass& p) const override {
    const SparsePattern& arcs = p.batch.arcs;
    const DualMatrix &left = p.in(f_.left), &right = p.in(f_.right);
    const std::size_t channels = out_.width / f_.heads;
    const auto score = [&](std::size_t i, std::size_t j, std::size_t e, std::size_t h) {  // e: none for the node itself
      DualNumber s;
      for (std::size_t c = h * channels; c < (h + 1) * channels; ++c) {
        DualNumber z = left[i][c] + right[j][c];
        for (std::size_t k = 0; e != kNone && k < f_.edge_features; ++k)
          z += p.edge_feature(e, k) * p.parameter(f_.edge_weight, k, c);
        s += p.parameter(f_.weight, 0, c) * dual_leaky(z);
      }
      return kernels::exp(s);
    };
    std::vector<DualNumber> alpha;  // of one node and head: itself, then its arcs
    p.each(out_, [&](DualNumber& y, std::size_t i, std::size_t c) {
      const std::size_t first = arcs.ptr[i], last = arcs.ptr[i + 1];
      if (c % channels == 0) {
        alpha = {score(i, i, kNone, c / channels)};
        for (std::size_t e = first; e < last; ++e) alpha.push_back(score(i, arcs.index[e], e, c / channels));
        DualNumber sum;
        for (const DualNumber& s : alpha) sum += s;
        for (DualNumber& s : alpha) s = s / sum;
      }
      y = alpha[0] * right[i][c];
      for (std::size_t e = first; e < last; ++e) y += alpha[1 + e - first] * right[arcs.index[e]][c];
    });
  }

 private:
  // What the scores depend on.
  message::Attention<T> scores_of(const Seen<T>& p) const {
    message::Attention<T> a{.ptr = p.batch.arcs.ptr.data(),
                            .source = p.batch.arcs.index.data(),
                            .heads = f_.heads,
                            .channels = out_.width / f_.heads,
                            .stride = out_.stride,
                            .left = p.value(f_.left),
                            .right = p.value(f_.right),
                            .a = p.parameter(f_.weight)};
    if (f_.edge_features == 0) return a;
    a.edge_features = f_.edge_features, a.edge_stride = p.batch.edge_x.stride(0);
    a.edge = p.batch.edge_x.data(), a.edge_weight = p.parameter(f_.edge_weight);
    return a;
  }
  message::Attention<T> attention_of(const Pass<T>& p) const {
    const SparsePattern& arcs = p.batch.arcs;
    auto a = scores_of(p);
    a.out_ptr = arcs.out_ptr.data(), a.out_target = arcs.out_index.data(), a.slot = arcs.out_slot.data();
    a.alpha = p.numbers(kAlpha), a.self_alpha = p.numbers(kSelfAlpha), a.y = p.output(out_);
    return a;
  }

  const Fields f_;
};

}  // namespace gradloom::graph
