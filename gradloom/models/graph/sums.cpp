// The gradients of parameters in graph tasks: what every graph adds, graph after graph.
#include "gradloom/exec/profile.h"
#include "gradloom/models/graph/backward_pass.h"

namespace gradloom::graph {

using dense::Start;

// Large graphs are cut into blocks of rows, so that all workers take part; their sums wait in memory of their own.
template <class T>
void GraphNetwork<T>::Pass::sum_large_graphs(std::size_t n) const {
  const Op& op = network.ops_[n];
  const std::size_t size = network.parameters_[op.weight].stored_size();
  T* to = tape.workspace_.template at<T>(tape.large_);
  for (std::size_t g = 0; g < batch.graphs; ++g) {
    const std::size_t first = batch.graph_ptr[g], last = batch.graph_ptr[g + 1];
    const std::size_t count = dense::row_blocks(last - first, kGraphBlock);
    if (count == 1) continue;
    block_products(op, first, last, kGraphBlock);
    for_ranges(ex, size, [&](std::size_t begin, std::size_t end) {
      dense::add_blocks<T>(blocks(), count, size, begin, end, GradientMode::overwrite, to);
    });
    to += size;
  }
}

// Rows [begin, end) of a weight.
template <class T>
void GraphNetwork<T>::Pass::sum_weight(const SumTask& task, unsigned worker) const {
  const Op& op = network.ops_[task.op];
  const Tensor &in = network.tensors_[op.in], &out = network.tensors_[op.out];
  const T *x = network.value(tape, op.in), *dl_dy = network.gradient_of(tape, op.out);
  const T* large = tape.workspace_.template at<T>(tape.large_);
  const std::size_t at = task.begin * out.stride, size = (task.end - task.begin) * out.stride;
  T* to = slice(op.weight) + at;
  dense::Product<T> p{.rows = task.end - task.begin, .width = out.stride, .x_row = 1, .x_inner = in.stride};
  p.w_stride = out.stride, p.y = to, p.y_stride = out.stride;
  const auto add_rows = [&](std::size_t first, std::size_t last, Start start) {
    auto some = p;
    some.inner = last - first, some.start = start;
    some.x = x + first * in.stride + task.begin, some.w = dl_dy + first * out.stride;
    dense::multiply<T>(ex.variant(), some);
  };
  const bool fresh = step.gradient == GradientMode::overwrite;
  if (out.graphs || batch.graphs == 0) {  // a graph is one row; its product is its sum
    add_rows(0, out.graphs ? batch.graphs : 0, fresh ? Start::zero : Start::y);
  } else {
    for (std::size_t g = 0; g < batch.graphs; ++g) {
      const std::size_t first = batch.graph_ptr[g], last = batch.graph_ptr[g + 1];
      const bool alone = fresh && g == 0;
      if (dense::row_blocks(last - first, kGraphBlock) == 1) {
        add_rows(first, last, alone ? Start::zero : Start::apart);
        continue;
      }
      for (std::size_t i = 0; i < size; ++i) to[i] = alone ? large[at + i] : to[i] + large[at + i];
      large += network.parameters_[op.weight].stored_size();
    }
  }
  const std::size_t offset = network.parameters_[op.weight].offset + at;
  if (sink) sink->finished(offset, offset + size, worker);
}

// A slice from its sums over blocks of rows, each `size` apart.
template <class T>
void GraphNetwork<T>::Pass::fold(std::size_t s, T* from, std::size_t size, unsigned worker) const {
  if (!trains(s)) return;
  const Slice& to = network.parameters_[s];
  const std::uint32_t* first_block = tape.workspace_.template at<std::uint32_t>(tape.first_block_);
  if (batch.graphs == 0 && step.gradient == GradientMode::overwrite) std::fill_n(slice(s), to.stored_size(), T(0));
  for (std::size_t g = 0; g < batch.graphs; ++g)
    dense::add_blocks<T>(from + first_block[g] * size, first_block[g + 1] - first_block[g], size, 0, to.stored_size(),
                         mode_of(g), slice(s));
  if (sink) sink->finished(to.offset, to.end(), worker);
}

template <class T>
void GraphNetwork<T>::Pass::sum_small(std::size_t n, unsigned worker) const {
  const Op& op = network.ops_[n];
  const Tensor& out = network.tensors_[op.out];
  const std::size_t stride = out.stride;
  switch (op.kind) {
    case OpKind::gather:
      return fold(op.epsilon, sums(n), 1, worker);
    case OpKind::attention: {
      const std::size_t features = op.edge_weight == kNone ? 0 : network.options_.edge_features;
      fold(op.weight, sums(n), stride * (1 + features), worker);
      return fold(op.edge_weight, sums(n) + stride, stride * (1 + features), worker);
    }
    case OpKind::norm:
      fold(op.weight, sums(n), 2 * stride, worker);
      return fold(op.bias, sums(n) + stride, 2 * stride, worker);
    default:
      break;
  }
  if (!trains(op.bias)) return;
  if (!out.graphs) return fold(op.bias, sums(n), stride, worker);
  const T* rows = network.gradient_of(tape, op.out);
  T* to = slice(op.bias);
  if (batch.graphs == 0 && step.gradient == GradientMode::overwrite) std::fill_n(to, stride, T(0));
  for (std::size_t g = 0; g < batch.graphs; ++g)
    dense::add_blocks<T>(const_cast<T*>(rows) + g * stride, 1, stride, 0, stride, mode_of(g), to);
  const Slice& done = network.parameters_[op.bias];
  if (sink) sink->finished(done.offset, done.end(), worker);
}

template <class T>
void GraphNetwork<T>::Pass::sum_parameters() const {
  const auto& tasks = network.sums_;
  const auto run = [&](std::size_t first, std::size_t last) {
    ex.parallel_for(last - first, [&](std::size_t t, unsigned worker) {
      const SumTask& task = tasks[first + t];
      const ProfileScope scope(ex, tape.op_[task.op].backward_phase, worker);
      if (task.begin == task.end) return sum_small(task.op, worker);
      if (trains(network.ops_[task.op].weight)) sum_weight(task, worker);
    });
  };
  if (tape.large_count_ == 0) return run(0, tasks.size());
  for (std::size_t first = 0, last; first < tasks.size(); first = last) {
    last = first;
    while (last < tasks.size() && tasks[last].op == tasks[first].op) ++last;
    const Op& op = network.ops_[tasks[first].op];
    if (op.kind == OpKind::dense && !network.tensors_[op.out].graphs && trains(op.weight))
      sum_large_graphs(tasks[first].op);
    run(first, last);
  }
}

template void GraphNetwork<float>::Pass::sum_parameters() const;
template void GraphNetwork<double>::Pass::sum_parameters() const;

}  // namespace gradloom::graph
