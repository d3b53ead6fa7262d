// From the nodes of a graph to one row.
#pragma once

#include "gradloom/models/graph/ops/dual_pass.h"
#include "gradloom/models/graph/ops/maximum.h"

namespace gradloom::graph {

// From the nodes of each graph to one row.
template <class T>
class ReadoutOp final : public WinnerOp<T> {
  using WinnerOp<T>::out_, WinnerOp<T>::kWinner;

 public:
  struct Fields {
    Tensor in, out;
    Readout readout = Readout::sum;
  };
  ReadoutOp(std::string name, Fields f) : WinnerOp<T>("readout", std::move(name), f.out, {{f.in}}), f_(std::move(f)) {}

  void forward(const Pass<T>& p) const override {
    const std::size_t stride = out_.stride;
    const T* x = p.value(f_.in);
    T* y = p.output(out_);
    std::uint32_t* winner = p.indices(kWinner);
    for_graphs(p, [&](std::size_t g, std::size_t first, std::size_t last) {
      T* __restrict to = y + g * stride;
      std::fill_n(to, stride, T(0));
      if (is_max()) std::fill_n(winner + g * stride, stride, message::kNobody);
      for (std::size_t i = first; i < last; ++i) {
        const T* __restrict from = x + i * stride;
        if (!is_max()) {
          for (std::size_t c = 0; c < stride; ++c) to[c] = to[c] + from[c];
          continue;
        }
        for (std::size_t c = 0; c < stride; ++c)
          if (i == first || from[c] > to[c]) to[c] = from[c], winner[g * stride + c] = static_cast<std::uint32_t>(i);
      }
      if (f_.readout == Readout::mean && last > first) {
        const T inverse = T(1) / static_cast<T>(last - first);
        for (std::size_t c = 0; c < stride; ++c) to[c] = to[c] * inverse;
      }
    });
  }

  void backward(const Pass<T>& p) const override {
    if (!p.needed(f_.in)) return;
    const std::size_t stride = out_.stride;
    const T* dl_dy = p.gradient(out_);
    T* dl_dx = p.target(f_.in);
    const std::uint32_t* winner = p.indices(kWinner);
    for_graphs(p, [&](std::size_t g, std::size_t first, std::size_t last) {
      const T* from = dl_dy + g * stride;
      const T scale = f_.readout == Readout::mean && last > first ? T(1) / static_cast<T>(last - first) : T(1);
      for (std::size_t i = first; i < last; ++i)
        for (std::size_t c = 0; c < stride; ++c)
          dl_dx[i * stride + c] = is_max() ? (winner[g * stride + c] == i ? from[c] : T(0)) : from[c] * scale;
    });
    p.written(f_.in);
  }

  void branches(const Seen<T>& p, Hash& hash) const override {
    if (is_max()) WinnerOp<T>::branches(p, hash);
  }

  void dual(DualPass& p) const override {
    p.each(out_, [&](DualNumber& y, std::size_t g, std::size_t c) {
      const std::size_t first = p.batch.graph_ptr[g], last = p.batch.graph_ptr[g + 1];
      for (std::size_t i = first; i < last; ++i) {
        const DualNumber v = p.in(f_.in)[i][c];
        if (f_.readout == Readout::sum) y += v;
        if (f_.readout == Readout::mean) y += v / DualNumber(static_cast<double>(last - first));
        if (is_max() && (i == first || v > y)) y = v;
      }
    });
  }

 private:
  bool is_max() const { return f_.readout == Readout::max; }

  // body(graph, first, last) for every graph of a part and its nodes.
  template <class F>
  void for_graphs(const Pass<T>& p, F&& body) const {
    const Part& part = p.part;
    const std::size_t graphs = part.last_graph - part.first_graph,
                      tasks =
                          std::min(graphs, task_count((part.last_node - part.first_node) * kElementwise * out_.stride));
    p.ex.parallel_for(tasks, [&](std::size_t t, unsigned) {
      for (std::size_t g = graphs * t / tasks; g < graphs * (t + 1) / tasks; ++g) {
        const std::size_t graph = part.first_graph + g;
        body(graph, p.batch.graph_ptr[graph], p.batch.graph_ptr[graph + 1]);
      }
    });
  }

  const Fields f_;
};

}  // namespace gradloom::graph
