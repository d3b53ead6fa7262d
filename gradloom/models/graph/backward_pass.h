// One call of GraphNetwork::backward(), or the part of it that one worker does; not part of the interface.
#pragma once

#include "gradloom/models/graph/pass.h"

namespace gradloom::graph {

template <class T>
struct GraphNetwork<T>::Pass {
  const GraphNetwork& network;
  const Exec& ex;
  const Step& step;
  const ModelArrays<T>& arrays;
  const Batch& batch;
  Tape& tape;
  std::span<T> gradient;
  GradientSink* sink;
  bool edges;  // gradients of what edges carry are asked for
  Part part;

  // Sums run over all rows at once and are finished operation by operation; otherwise graph by graph, at the end.
  bool whole() const { return network.options_.task == GraphTask::node; }
  bool trains(std::size_t slice) const { return slice != kNone && !step.is_frozen(slice); }
  bool graded(std::size_t n, std::size_t t) const { return tape.graded_[n * network.tensors_.size() + t]; }
  T* slice(std::size_t s) const { return gradient.data() + network.parameters_[s].offset; }
  T* blocks() const { return tape.workspace_.template at<T>(tape.blocks_); }
  T* scratch() const { return tape.workspace_.template at<T>(tape.scratch_); }
  T* sums(std::size_t n) const { return tape.workspace_.template at<T>(tape.op_[n].sums); }

  // body(block, begin, end) for the blocks of nodes of this part over which sums are defined; blocks are numbered
  // through the batch.
  template <class F>
  void for_sums(F&& body) const {
    if (whole()) return for_blocks(ex, batch.nodes, body);
    const std::uint32_t* first_block = tape.workspace_.template at<std::uint32_t>(tape.first_block_);
    for (std::size_t g = part.first_graph; g < part.last_graph; ++g) {
      const std::size_t first = batch.graph_ptr[g];
      for_blocks(
          ex, batch.graph_ptr[g + 1] - first,
          [&](std::size_t b, std::size_t begin, std::size_t end) {
            body(first_block[g] + b, first + begin, first + end);
          },
          kGraphBlock);
    }
  }

  // Adds the blocks of a slice (each `size` apart) into its gradient and tells the sink, range by range.
  void finish_blocks(std::size_t s, T* from, std::size_t count, std::size_t size) const {
    finish_ranges(s, [&](std::size_t begin, std::size_t end) {
      dense::add_blocks<T>(from, count, size, begin, end, step.gradient, slice(s));
    });
  }
  // A slice whose gradient is complete in `from`.
  void finish(std::size_t s, const T* from) const {
    T* to = slice(s);
    finish_ranges(s, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        to[i] = step.gradient == GradientMode::overwrite ? from[i] : to[i] + from[i];
    });
  }
  // fill(begin, end) completes pieces of a slice's gradient, and the sink is told of each.
  template <class F>
  void finish_ranges(std::size_t s, F&& fill) const {
    const Slice& done = network.parameters_[s];
    constexpr std::size_t kRange = 2048;
    ex.parallel_for((done.stored_size() + kRange - 1) / kRange, [&](std::size_t t, unsigned worker) {
      const std::size_t begin = t * kRange, end = std::min(done.stored_size(), begin + kRange);
      fill(begin, end);
      if (sink) sink->finished(done.offset + begin, done.offset + end, worker);
    });
  }
  // Where an operation writes the gradient of a tensor: the tensor's own memory the first time, then scratch.
  T* target(std::size_t n, std::size_t t) const { return graded(n, t) ? scratch_of(t) : network.gradient_of(tape, t); }
  // Row r of a tensor is r strides behind this. Workers are at tensors of different strides at the same time; each
  // stays within the rows of its part at the widest stride.
  T* scratch_of(std::size_t t) const {
    const Tensor& tensor = network.tensors_[t];
    return scratch() + part.begin(tensor) * (tape.widest_ - tensor.stride);
  }
  void written(std::size_t n, std::size_t t) const {
    if (!graded(n, t)) return;
    const Tensor& tensor = network.tensors_[t];
    T* to = network.gradient_of(tape, t);
    for_rows(ex, part.begin(tensor), part.end(tensor), kPlain * tensor.stride, [&](std::size_t begin, std::size_t end) {
      rowwise::add<T>({begin, end, tensor.width, tensor.stride}, scratch_of(t), to);
    });
  }

  void dense_op(const Op& op, std::size_t n) const;
  void sparse_op(const Op& op, std::size_t n) const;
  void gather_op(const Op& op, std::size_t n) const;
  void edge_gather_op(const Op& op) const;
  void attention_op(const Op& op, std::size_t n) const;
  void norm_op(const Op& op, std::size_t n) const;
  // Before the rows of a block are summed, make_rows fills them; not called for a bias that does not learn.
  void bias_of(
      const Op& op, std::size_t n, const T* dl_dz,
      FunctionRef<void(std::size_t begin, std::size_t end)> make_rows = [](std::size_t, std::size_t) {}) const;
  void block_products(const Op& op, std::size_t first, std::size_t last, std::size_t least) const;

  // The gradients of parameters from those of rows, graph after graph; see sums.cpp.
  void sum_parameters() const;
  void sum_large_graphs(std::size_t n) const;
  void sum_weight(const SumTask& task, unsigned worker) const;
  void sum_small(std::size_t n, unsigned worker) const;
  void fold(std::size_t s, T* from, std::size_t size, unsigned worker) const;
  GradientMode mode_of(std::size_t graph) const { return graph == 0 ? step.gradient : GradientMode::accumulate; }
};

}  // namespace gradloom::graph
