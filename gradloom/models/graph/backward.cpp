// The backward pass of a graph network, operation by operation.
#include <fmt/format.h>

#include "gradloom/base/error.h"
#include "gradloom/exec/profile.h"
#include "gradloom/models/graph/pass.h"

namespace gradloom::graph {

using dense::Start;

// One call of backward().
template <class T>
struct GraphNetwork<T>::Pass {
  const GraphNetwork& network;
  const Exec& ex;
  const Step& step;
  const ModelArrays<T>& arrays;
  const Batch& batch;
  Tape& tape;
  Array<T> gradient;
  GradientSink* sink;
  bool edges;  // gradients of what edges carry are asked for

  bool trains(std::size_t slice) const { return slice != kNone && !step.is_frozen(slice); }
  T* slice(std::size_t s) const { return gradient.data() + network.parameters_[s].offset; }
  T* blocks() const { return tape.workspace_.template at<T>(tape.blocks_); }
  T* scratch() const { return tape.workspace_.template at<T>(tape.scratch_); }

  // Adds the blocks of a slice (each `size` apart) into its gradient and tells the sink, range by range.
  void finish_blocks(std::size_t s, std::size_t count, std::size_t size, std::size_t offset) const {
    const Slice& to = network.parameters_[s];
    for_ranges(ex, to.stored_size(), [&](std::size_t begin, std::size_t end) {
      dense::add_blocks<T>(blocks() + offset, count, size, begin, end, step.gradient, slice(s));
    });
    report(s);
  }
  // A slice whose gradient is complete in `from`.
  void finish(std::size_t s, const T* from) const {
    const std::size_t size = network.parameters_[s].stored_size();
    T* to = slice(s);
    for (std::size_t i = 0; i < size; ++i) to[i] = step.gradient == GradientMode::overwrite ? from[i] : to[i] + from[i];
    report(s);
  }
  void report(std::size_t s) const {
    if (!sink) return;
    const Slice& done = network.parameters_[s];
    constexpr std::size_t kRange = 4096;
    ex.parallel_for((done.stored_size() + kRange - 1) / kRange, [&](std::size_t t, unsigned worker) {
      sink->finished(done.offset + t * kRange, std::min(done.end(), done.offset + (t + 1) * kRange), worker);
    });
  }
  // Where an operation writes the gradient of a tensor: the tensor's own memory the first time, then scratch.
  T* target(std::size_t t) const { return tape.graded_[t] ? scratch() : network.gradient_of(tape, t); }
  void written(std::size_t t) const {
    if (tape.graded_[t]) {
      const Tensor& tensor = network.tensors_[t];
      T* to = network.gradient_of(tape, t);
      for_rows(ex, network.rows_of(batch, t), tensor.stride, [&](std::size_t begin, std::size_t end) {
        rowwise::add<T>({begin, end, tensor.width, tensor.stride}, scratch(), to);
      });
    }
    tape.graded_[t] = 1;
  }

  void dense_op(const Op& op) const;
  void sparse_op(const Op& op, std::size_t n) const;
  void gather_op(const Op& op) const;
  void edge_gather_op(const Op& op) const;
  void attention_op(const Op& op, std::size_t n) const;
  void bias_of(const Op& op, const T* dl_dz) const;
};

template <class T>
T* GraphNetwork<T>::gradient_of(Tape& tape, std::size_t t) const {
  return tape.workspace_.template at<T>(tape.gradient_[t]);
}

// dl_dx before dl_dw: the weights may be updated as soon as their gradient is told.
template <class T>
void GraphNetwork<T>::Pass::dense_op(const Op& op) const {
  const Tensor &in = network.tensors_[op.in], &out = network.tensors_[op.out];
  const std::size_t rows = network.rows_of(batch, op.out);
  const T* dl_dy = network.gradient_of(tape, op.out);
  const T* w = network.weights(arrays, op.weight);
  if (tape.needed_[op.in]) {
    T* transposed = tape.workspace_.template at<T>(tape.transposed_);
    dense::transpose<T>(w, in.width, out.width, out.stride, transposed);
    T* dl_dx = network.gradient_of(tape, op.in);
    dense::Product<T> p{.inner = out.width, .width = in.stride, .x_row = out.stride};
    p.w = transposed, p.w_stride = in.stride, p.y_stride = in.stride;
    p.start = tape.graded_[op.in] ? Start::y : Start::zero;
    for_rows(ex, rows, out.width * in.stride, [&](std::size_t begin, std::size_t end) {
      auto part = p;
      part.rows = end - begin, part.x = dl_dy + begin * out.stride, part.y = dl_dx + begin * in.stride;
      dense::multiply<T>(ex.variant(), part);
    });
    tape.graded_[op.in] = 1;
  }
  if (trains(op.weight)) {
    const T* x = network.value(tape, op.in);
    const std::size_t size = in.width * out.stride;
    for_blocks(ex, rows, [&](std::size_t b, std::size_t begin, std::size_t end) {
      dense::Product<T> p{.rows = in.width, .inner = end - begin, .width = out.stride, .x = x + begin * in.stride};
      p.x_row = 1, p.x_inner = in.stride, p.w = dl_dy + begin * out.stride, p.w_stride = out.stride;
      p.y = blocks() + b * size, p.y_stride = out.stride;
      dense::multiply<T>(ex.variant(), p);
    });
    finish_blocks(op.weight, dense::row_blocks(rows), size, 0);
  }
  if (op.start == Start::bias) bias_of(op, dl_dy);
}

template <class T>
void GraphNetwork<T>::Pass::bias_of(const Op& op, const T* dl_dz) const {
  if (!trains(op.bias)) return;
  const std::size_t rows = network.rows_of(batch, op.out), stride = network.tensors_[op.out].stride;
  for_blocks(ex, rows, [&](std::size_t b, std::size_t begin, std::size_t end) {
    dense::column_sums<T>(dl_dz + begin * stride, end - begin, stride, stride, blocks() + b * stride);
  });
  finish_blocks(op.bias, dense::row_blocks(rows), stride, 0);
}

template <class T>
void GraphNetwork<T>::Pass::sparse_op(const Op& op, std::size_t n) const {
  if (!trains(op.weight)) return;
  const Tensor& out = network.tensors_[op.out];
  message::Gather<T> g{.ptr = batch.features.out_ptr.data(), .source = batch.features.out_index.data()};
  g.slot = batch.features.out_slot.data();
  g.value =
      tape.trained_ && op.probability > 0 ? tape.workspace_.template at<T>(tape.op_[n].b) : batch.feature_value.data();
  g.x = network.gradient_of(tape, op.out), g.x_stride = out.stride, g.width = out.stride, g.y_stride = out.stride;
  // Every column of the features owns a row of the gradient.
  g.y = step.gradient == GradientMode::overwrite ? slice(op.weight) : blocks();
  network.run_gather(ex, tape, g, batch.feature_columns, tape.feature_out_);
  if (step.gradient == GradientMode::accumulate) return finish(op.weight, blocks());
  report(op.weight);
}

template <class T>
void GraphNetwork<T>::Pass::gather_op(const Op& op) const {
  const Tensor& out = network.tensors_[op.out];
  const std::size_t stride = out.stride, rows = batch.nodes;
  const T* dl_dy = network.gradient_of(tape, op.out);
  auto forward = network.gather_of(op, batch, arrays);
  forward.x = network.value(tape, op.in), forward.x_stride = stride, forward.width = stride;
  if (edges && !batch.edge_weight.empty()) {
    T* to = tape.workspace_.template at<T>(tape.edge_weight_);
    const std::size_t tasks = task_count(batch.arc_count() * stride);
    ex.parallel_for(tasks, [&](std::size_t t, unsigned) {
      message::value_gradient<T>(forward, dl_dy, stride, message::row_bound(forward.ptr, rows, tasks, t),
                                 message::row_bound(forward.ptr, rows, tasks, t + 1), message::Onto::add, to);
    });
  }
  if (tape.needed_[op.in]) {
    auto g = forward;
    g.ptr = batch.arcs.out_ptr.data(), g.source = batch.arcs.out_index.data(), g.slot = batch.arcs.out_slot.data();
    std::swap(g.row_scale, g.source_scale);
    g.x = dl_dy, g.y = target(op.in), g.y_stride = stride;
    network.run_gather(ex, tape, g, rows, tape.out_);
    written(op.in);
  }
  if (trains(op.epsilon)) {
    const T* x = network.value(tape, op.in);
    for_blocks(ex, rows, [&](std::size_t b, std::size_t begin, std::size_t end) {
      T sum = 0;
      for (std::size_t i = begin; i < end; ++i) sum = sum + message::dot8(dl_dy + i * stride, x + i * stride, stride);
      blocks()[b] = sum;
    });
    finish_blocks(op.epsilon, dense::row_blocks(rows), 1, 0);
  }
}

// Only the gradients of edges: features of edges depend on no parameter.
template <class T>
void GraphNetwork<T>::Pass::edge_gather_op(const Op& op) const {
  if (!edges) return;
  const std::size_t stride = network.tensors_[op.out].stride, rows = batch.nodes;
  const T* dl_dy = network.gradient_of(tape, op.out);
  auto g = network.gather_of(op, batch, arrays);
  g.source = nullptr, g.source_scale = nullptr;
  g.x = batch.edge_x.data(), g.x_stride = batch.edge_x.stride(0), g.width = stride;
  T* to = tape.workspace_.template at<T>(tape.edge_x_);
  T* to_weight = tape.workspace_.template at<T>(tape.edge_weight_);
  const std::size_t tasks = task_count(batch.arc_count() * stride);
  ex.parallel_for(tasks, [&](std::size_t t, unsigned) {
    const std::size_t begin = message::row_bound(g.ptr, rows, tasks, t),
                      end = message::row_bound(g.ptr, rows, tasks, t + 1);
    if (g.value) message::value_gradient<T>(g, dl_dy, stride, begin, end, message::Onto::add, to_weight);
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t e = g.ptr[i]; e < g.ptr[i + 1]; ++e) {
        const T factor = (g.row_scale ? g.row_scale[i] : T(1)) * g.factor(e);
        for (std::size_t c = 0; c < stride; ++c)
          to[e * stride + c] = to[e * stride + c] + factor * dl_dy[i * stride + c];
      }
  });
}

template <class T>
void GraphNetwork<T>::Pass::attention_op(const Op& op, std::size_t n) const {
  const auto p = network.attention_of(op, n, batch, arrays, tape);
  const std::size_t rows = batch.nodes, stride = p.stride, size = stride * (1 + p.edge_features);
  message::AttentionGradient<T> g;
  g.dl_dy = network.gradient_of(tape, op.out);
  g.ds = tape.workspace_.template at<T>(tape.op_[n].c), g.self_ds = tape.workspace_.template at<T>(tape.op_[n].d);
  g.dl_dleft = network.gradient_of(tape, op.in), g.dl_dright = network.gradient_of(tape, op.other);
  if (edges && p.edge_features > 0) g.dl_dedge = tape.workspace_.template at<T>(tape.edge_x_);
  for_blocks(ex, rows, [&](std::size_t b, std::size_t begin, std::size_t end) {
    auto part = g;
    part.dl_da = blocks() + b * size, part.dl_dedge_weight = part.dl_da + stride;
    message::attend_gradient<T>(p, part, begin, end);
  });
  const std::size_t tasks = task_count((batch.arc_count() + rows) * stride * 4);
  ex.parallel_for(tasks, [&](std::size_t t, unsigned) {
    message::attend_source_gradient<T>(p, g, message::row_bound(p.out_ptr, rows, tasks, t),
                                       message::row_bound(p.out_ptr, rows, tasks, t + 1));
  });
  tape.graded_[op.in] = tape.graded_[op.other] = 1;
  if (trains(op.weight)) finish_blocks(op.weight, dense::row_blocks(rows), size, 0);
  if (trains(op.edge_weight)) finish_blocks(op.edge_weight, dense::row_blocks(rows), size, stride);
}

template <class T>
void GraphNetwork<T>::backward_op(const Pass& pass, std::size_t n) const {
  const Op& op = ops_[n];
  const Exec& ex = pass.ex;
  Tape& tape = pass.tape;
  const Tensor& out = tensors_[op.out];
  const std::size_t rows = rows_of(pass.batch, op.out), stride = out.stride;
  T* dl_dy = gradient_of(tape, op.out);
  const auto& memory = tape.op_[n];
  switch (op.kind) {
    case OpKind::dense:
      return pass.dense_op(op);
    case OpKind::sparse:
      return pass.sparse_op(op, n);
    case OpKind::gather:
      return pass.gather_op(op);
    case OpKind::edge_gather:
      return pass.edge_gather_op(op);
    case OpKind::attention:
      return pass.attention_op(op, n);
    case OpKind::dropout: {
      if (!tape.needed_[op.in]) return;
      T* to = pass.target(op.in);
      if (!tape.trained_) {
        std::copy_n(dl_dy, rows * stride, to);
      } else {
        const std::uint8_t* keep = tape.workspace_.template at<std::uint8_t>(memory.a);
        const T scale = static_cast<T>(dropout(pass.step, op.probability, n).scale());
        for_ranges(ex, rows * stride, [&](std::size_t begin, std::size_t end) {
          rowwise::apply_dropout<T>(dl_dy, keep, scale, begin, end, to);
        });
      }
      return pass.written(op.in);
    }
    case OpKind::maximum: {
      if (!tape.needed_[op.in]) return;
      message::MaximumGradient<T> m;
      m.out_ptr = pass.batch.arcs.out_ptr.data(), m.target = pass.batch.arcs.out_index.data();
      m.slot = pass.batch.arcs.out_slot.data();
      m.winner = tape.workspace_.template at<std::uint32_t>(memory.a);
      m.dl_dy = dl_dy, m.stride = stride, m.width = stride, m.dl_dx = pass.target(op.in), m.dl_dx_stride = stride;
      const std::size_t tasks = task_count((pass.batch.arc_count() + rows) * stride);
      ex.parallel_for(tasks, [&](std::size_t t, unsigned) {
        const std::size_t begin = message::row_bound(m.out_ptr, rows, tasks, t),
                          end = message::row_bound(m.out_ptr, rows, tasks, t + 1);
        std::fill(m.dl_dx + begin * stride, m.dl_dx + end * stride, T(0));
        message::max_gradient_rows<T>(m, begin, end);
      });
      return pass.written(op.in);
    }
    case OpKind::norm: {
      // Sums of gain and shift, one after the other.
      T* sums = pass.scratch();
      backward_norm(ex, *this, {pass.step, pass.arrays, op, rows, out.width, stride}, value(tape, op.in),
                    tape.workspace_.template at<T>(memory.a), tape.workspace_.template at<T>(memory.b), pass.blocks(),
                    sums, dl_dy, gradient_of(tape, op.in));
      tape.graded_[op.in] = 1;
      if (pass.trains(op.weight)) pass.finish(op.weight, sums);
      if (pass.trains(op.bias)) pass.finish(op.bias, sums + stride);
      return;
    }
    case OpKind::activate: {
      const T *x = value(tape, op.in), *bias = weights(pass.arrays, op.bias);
      if (op.other != kNone && tape.needed_[op.other]) {
        T* to = pass.target(op.other);
        std::copy_n(dl_dy, rows * stride, to);
        pass.written(op.other);
      }
      T* dl_dz = gradient_of(tape, op.in);
      for_rows(ex, rows, stride, [&](std::size_t begin, std::size_t end) {
        rowwise::activate_gradient<T>({begin, end, out.width, stride}, op.activation, x, bias, dl_dy, dl_dz);
      });
      tape.graded_[op.in] = 1;
      return pass.bias_of(op, dl_dz);
    }
    case OpKind::jump_max: {
      const std::uint32_t* winner = tape.workspace_.template at<std::uint32_t>(memory.a);
      for (std::size_t k = 0; k < op.ins.size(); ++k) {
        if (!tape.needed_[op.ins[k]]) continue;
        T* to = pass.target(op.ins[k]);
        for_ranges(ex, rows * stride, [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) to[i] = winner[i] == k ? dl_dy[i] : T(0);
        });
        pass.written(op.ins[k]);
      }
      return;
    }
    case OpKind::readout:
      if (!tape.needed_[op.in]) return;
      backward_readout(ex, op.readout, pass.batch, dl_dy, stride, tape.workspace_.template at<std::uint32_t>(memory.a),
                       pass.target(op.in));
      return pass.written(op.in);
  }
}

template <class T>
void GraphNetwork<T>::backward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch,
                               Tape& tape, View<const T, 2> dl_dy, Array<T> gradient, View<T, 2> dl_dx,
                               GradientSink* sink) const {
  const auto fail = [](const std::string& m) { throw Exception(ErrorCode::invalid_input, m); };
  if (!tape.limits_.backward) fail("the tape was made for forward passes only");
  if (tape.batch_rows_ != batch.size || tape.batch_nodes_ != batch.nodes)
    fail("backward needs the tape of the forward pass of the same batch");
  const bool inputs = !dl_dx.empty();
  if (inputs && (!tape.limits_.input_gradient || options_.sparse))
    fail("dl_dx was asked for, but the tape was not made for it or the features are sparse");
  Pass pass{*this, ex, step, arrays, batch, tape, gradient, sink, inputs};
  tape.edge_weight_gradient_ = {}, tape.edge_feature_gradient_ = {};
  if (inputs && !batch.edge_weight.empty()) {
    T* to = tape.workspace_.template at<T>(tape.edge_weight_);
    std::fill_n(to, batch.arc_count(), T(0));
    tape.edge_weight_gradient_ = {to, batch.arc_count()};
  }
  if (inputs && options_.edge_features > 0) {
    const std::size_t stride = dense::padded(options_.edge_features);
    T* to = tape.workspace_.template at<T>(tape.edge_x_);
    std::fill_n(to, batch.arc_count() * stride, T(0));
    tape.edge_feature_gradient_ = View<const T, 2>(to, {batch.arc_count(), options_.edge_features}, {stride, 1});
  }
  // A tensor's gradient is needed when something below it learns or is asked for.
  std::fill(tape.needed_.begin(), tape.needed_.end(), 0);
  std::fill(tape.graded_.begin(), tape.graded_.end(), 0);
  tape.needed_[0] = inputs;
  for (const Op& op : ops_) {
    bool needed = inputs;
    for (const std::size_t s : {op.weight, op.bias, op.edge_weight, op.epsilon}) needed = needed || pass.trains(s);
    for (const std::size_t t : {op.in, op.other}) needed = needed || (t != kNone && tape.needed_[t]);
    for (const std::size_t t : op.ins) needed = needed || tape.needed_[t];
    tape.needed_[op.out] = tape.needed_[op.out] || needed;
  }
  const std::size_t stride = tensors_[last_].stride;
  T* top = gradient_of(tape, last_);
  for (std::size_t i = 0; i < batch.size; ++i)
    for (std::size_t c = 0; c < stride; ++c) top[i * stride + c] = c < options_.outputs ? dl_dy(i, c) : T(0);
  tape.graded_[last_] = 1;
  for (std::size_t n = ops_.size(); n-- > 0;) {
    if (!tape.needed_[ops_[n].out]) continue;
    const ProfileScope scope(ex, tape.op_[n].backward_phase);
    backward_op(pass, n);
  }
  if (!inputs) return;
  const T* x = gradient_of(tape, 0);
  for (std::size_t i = 0; i < batch.nodes; ++i)
    for (std::size_t c = 0; c < options_.inputs; ++c) dl_dx(i, c) = x[i * tensors_[0].stride + c];
}

#define GRADLOOM_INSTANTIATE(T)                                                                                 \
  template T* GraphNetwork<T>::gradient_of(Tape&, std::size_t) const;                                           \
  template void GraphNetwork<T>::backward(const Exec&, const Step&, const ModelArrays<T>&, const Batch&, Tape&, \
                                          View<const T, 2>, Array<T>, View<T, 2>, GradientSink*) const;
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::graph
