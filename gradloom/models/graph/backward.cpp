// The backward pass of a graph network, operation by operation.
#include <fmt/format.h>

#include "gradloom/base/error.h"
#include "gradloom/exec/profile.h"
#include "gradloom/models/graph/backward_pass.h"

namespace gradloom::graph {

using dense::Start;

template <class T>
T* GraphNetwork<T>::gradient_of(Tape& tape, std::size_t t) const {
  return tape.workspace_.template at<T>(tape.gradient_[t]);
}

template <class T>
void GraphNetwork<T>::Pass::dense_op(const Op& op, std::size_t n) const {
  const Tensor &in = network.tensors_[op.in], &out = network.tensors_[op.out];
  const T* dl_dy = network.gradient_of(tape, op.out);
  if (tape.needed_[op.in]) {
    T* dl_dx = network.gradient_of(tape, op.in);
    dense::Product<T> p{.inner = out.width, .width = in.stride, .x_row = out.stride};
    p.w = tape.workspace_.template at<T>(tape.op_[n].transposed), p.w_stride = in.stride, p.y_stride = in.stride;
    p.start = graded(n, op.in) ? Start::y : Start::zero;
    for_rows(ex, part.begin(out), part.end(out), out.width * in.stride, [&](std::size_t begin, std::size_t end) {
      auto some = p;
      some.rows = end - begin, some.x = dl_dy + begin * out.stride, some.y = dl_dx + begin * in.stride;
      dense::multiply<T>(ex.variant(), some);
    });
  }
  if (whole() && trains(op.weight)) {
    const std::size_t rows = batch.nodes, size = in.width * out.stride;
    block_products(op, 0, rows, dense::kBlock);
    finish_blocks(op.weight, blocks(), dense::row_blocks(rows), size);
  }
  if (op.start == Start::bias) bias_of(op, n, dl_dy);
}

// x^T dl_dy of each block of rows [first, last), one after the other in blocks().
template <class T>
void GraphNetwork<T>::Pass::block_products(const Op& op, std::size_t first, std::size_t last, std::size_t least) const {
  const Tensor &in = network.tensors_[op.in], &out = network.tensors_[op.out];
  const T* x = network.value(tape, op.in) + first * in.stride;
  const T* dl_dy = network.gradient_of(tape, op.out) + first * out.stride;
  for_blocks(
      ex, last - first,
      [&](std::size_t b, std::size_t begin, std::size_t end) {
        dense::Product<T> p{.rows = in.width, .inner = end - begin, .width = out.stride, .x = x + begin * in.stride};
        p.x_row = 1, p.x_inner = in.stride, p.w = dl_dy + begin * out.stride, p.w_stride = out.stride;
        p.y = blocks() + b * in.width * out.stride, p.y_stride = out.stride;
        dense::multiply<T>(ex.variant(), p);
      },
      least);
}

// Rows of graphs need no sums here: each is the whole of its graph.
template <class T>
void GraphNetwork<T>::Pass::bias_of(const Op& op, std::size_t n, const T* dl_dz,
                                    FunctionRef<void(std::size_t, std::size_t)> make_rows) const {
  if (!trains(op.bias) || network.tensors_[op.out].graphs) return;
  const std::size_t stride = network.tensors_[op.out].stride;
  for_sums([&](std::size_t b, std::size_t begin, std::size_t end) {
    make_rows(begin, end);
    dense::column_sums<T>(dl_dz + begin * stride, end - begin, stride, stride, sums(n) + b * stride);
  });
  if (whole()) finish_blocks(op.bias, sums(n), dense::row_blocks(batch.nodes), stride);
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
  network.run_gather(ex, tape, g, 0, batch.feature_columns, tape.feature_out_);
  if (step.gradient == GradientMode::accumulate) return finish(op.weight, blocks());
  finish_ranges(op.weight, [](std::size_t, std::size_t) {});
}

template <class T>
void GraphNetwork<T>::Pass::gather_op(const Op& op, std::size_t n) const {
  const Tensor& out = network.tensors_[op.out];
  const std::size_t stride = out.stride;
  const T* dl_dy = network.gradient_of(tape, op.out);
  auto forward = network.gather_of(op, batch, arrays);
  forward.x = network.value(tape, op.in), forward.x_stride = stride, forward.width = stride;
  if (edges && !batch.edge_weight.empty()) {
    T* to = tape.workspace_.template at<T>(tape.edge_weight_);
    for_arcs(ex, forward.ptr, part.first_node, part.last_node, kGathered * stride,
             [&](std::size_t begin, std::size_t end) {
               message::value_gradient<T>(forward, dl_dy, stride, begin, end, message::Onto::add, to);
             });
  }
  if (tape.needed_[op.in]) {
    auto g = forward;
    g.ptr = batch.arcs.out_ptr.data(), g.source = batch.arcs.out_index.data(), g.slot = batch.arcs.out_slot.data();
    std::swap(g.row_scale, g.source_scale);
    g.x = dl_dy, g.y = target(n, op.in), g.y_stride = stride;
    network.run_gather(ex, tape, g, part.first_node, part.last_node, tape.out_);
    written(n, op.in);
  }
  if (trains(op.epsilon)) {
    const T* x = network.value(tape, op.in);
    for_sums([&](std::size_t b, std::size_t begin, std::size_t end) {
      T sum = 0;
      for (std::size_t i = begin; i < end; ++i) sum = sum + message::dot8(dl_dy + i * stride, x + i * stride, stride);
      sums(n)[b] = sum;
    });
    if (whole()) finish_blocks(op.epsilon, sums(n), dense::row_blocks(batch.nodes), 1);
  }
}

// Only the gradients of edges: features of edges depend on no parameter.
template <class T>
void GraphNetwork<T>::Pass::edge_gather_op(const Op& op) const {
  if (!edges) return;
  const std::size_t stride = network.tensors_[op.out].stride;
  const T* dl_dy = network.gradient_of(tape, op.out);
  auto g = network.gather_of(op, batch, arrays);
  g.source = nullptr, g.source_scale = nullptr;
  g.x = batch.edge_x.data(), g.x_stride = batch.edge_x.stride(0), g.width = stride;
  T* to = tape.workspace_.template at<T>(tape.edge_x_);
  T* to_weight = tape.workspace_.template at<T>(tape.edge_weight_);
  for_arcs(ex, g.ptr, part.first_node, part.last_node, kGathered * stride, [&](std::size_t begin, std::size_t end) {
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
  const std::size_t stride = p.stride, size = stride * (1 + p.edge_features);
  message::AttentionGradient<T> g;
  g.dl_dy = network.gradient_of(tape, op.out);
  g.ds = tape.workspace_.template at<T>(tape.op_[n].c), g.self_ds = tape.workspace_.template at<T>(tape.op_[n].d);
  g.dl_dleft = network.gradient_of(tape, op.in), g.dl_dright = network.gradient_of(tape, op.other);
  if (edges && p.edge_features > 0) g.dl_dedge = tape.workspace_.template at<T>(tape.edge_x_);
  for_sums([&](std::size_t b, std::size_t begin, std::size_t end) {
    auto some = g;
    some.dl_da = sums(n) + b * size, some.dl_dedge_weight = some.dl_da + stride;
    message::attend_gradient<T>(p, some, begin, end);
  });
  for_arcs(ex, p.out_ptr, part.first_node, part.last_node, 4 * kGathered * stride,
           [&](std::size_t begin, std::size_t end) { message::attend_source_gradient<T>(p, g, begin, end); });
  if (!whole()) return;
  const std::size_t count = dense::row_blocks(batch.nodes);
  if (trains(op.weight)) finish_blocks(op.weight, sums(n), count, size);
  if (trains(op.edge_weight)) finish_blocks(op.edge_weight, sums(n) + stride, count, size);
}

template <class T>
void GraphNetwork<T>::Pass::norm_op(const Op& op, std::size_t n) const {
  const Tensor& out = network.tensors_[op.out];
  const std::size_t stride = out.stride, both = 2 * stride;
  const T *x = network.value(tape, op.in), *dl_dy = network.gradient_of(tape, op.out);
  T *mean = tape.workspace_.template at<T>(tape.op_[n].a), *inverse = tape.workspace_.template at<T>(tape.op_[n].b);
  T* dl_dx = network.gradient_of(tape, op.in);
  const NormPass<T> norm{step, arrays, op, part.begin(out), part.end(out), out.width, stride};
  if (op.norm == Norm::batch) {
    backward_batch_norm(ex, network, norm, x, mean, inverse, blocks(), scratch(), dl_dy, dl_dx);
    if (trains(op.weight)) finish(op.weight, scratch());
    if (trains(op.bias)) finish(op.bias, scratch() + stride);
    return;
  }
  const auto layer = layer_of<T>(network, norm, x, mean, inverse);
  for_sums([&](std::size_t b, std::size_t begin, std::size_t end) {
    T* to = sums(n) + b * both;
    rowwise::layer_norm_gradient<T>({begin, end, out.width, stride}, layer, dl_dy, dl_dx, to, to + stride);
  });
  if (!whole()) return;
  const std::size_t count = dense::row_blocks(batch.nodes);
  if (trains(op.weight)) finish_blocks(op.weight, sums(n), count, both);
  if (trains(op.bias)) finish_blocks(op.bias, sums(n) + stride, count, both);
}

template <class T>
void GraphNetwork<T>::backward_op(const Pass& pass, std::size_t n) const {
  const Op& op = ops_[n];
  const Exec& ex = pass.ex;
  Tape& tape = pass.tape;
  const Tensor& out = tensors_[op.out];
  const std::size_t first = pass.part.begin(out), last = pass.part.end(out), stride = out.stride;
  T* dl_dy = gradient_of(tape, op.out);
  const auto& memory = tape.op_[n];
  switch (op.kind) {
    case OpKind::dense:
      return pass.dense_op(op, n);
    case OpKind::sparse:
      return pass.sparse_op(op, n);
    case OpKind::gather:
      return pass.gather_op(op, n);
    case OpKind::edge_gather:
      return pass.edge_gather_op(op);
    case OpKind::attention:
      return pass.attention_op(op, n);
    case OpKind::norm:
      return pass.norm_op(op, n);
    case OpKind::dropout: {
      if (!tape.needed_[op.in]) return;
      T* to = pass.target(n, op.in);
      const std::uint8_t* keep = tape.workspace_.template at<std::uint8_t>(memory.a);
      const T scale = static_cast<T>(dropout(pass.step, op.probability, n, 0).scale());
      for_rows(ex, first, last, kPlain * stride, [&](std::size_t begin, std::size_t end) {
        if (tape.trained_)
          rowwise::apply_dropout<T>(dl_dy, keep, scale, begin * stride, end * stride, to);
        else
          std::copy(dl_dy + begin * stride, dl_dy + end * stride, to + begin * stride);
      });
      return pass.written(n, op.in);
    }
    case OpKind::maximum: {
      if (!tape.needed_[op.in]) return;
      message::MaximumGradient<T> m;
      m.out_ptr = pass.batch.arcs.out_ptr.data(), m.target = pass.batch.arcs.out_index.data();
      m.slot = pass.batch.arcs.out_slot.data();
      m.winner = tape.workspace_.template at<std::uint32_t>(memory.a);
      m.dl_dy = dl_dy, m.stride = stride, m.width = stride, m.dl_dx = pass.target(n, op.in), m.dl_dx_stride = stride;
      for_arcs(ex, m.out_ptr, first, last, kGathered * stride, [&](std::size_t begin, std::size_t end) {
        std::fill(m.dl_dx + begin * stride, m.dl_dx + end * stride, T(0));
        message::max_gradient_rows<T>(m, begin, end);
      });
      return pass.written(n, op.in);
    }
    case OpKind::activate: {
      const T *x = value(tape, op.in), *bias = weights(pass.arrays, op.bias);
      if (op.other != kNone && tape.needed_[op.other]) {
        T* to = pass.target(n, op.other);
        std::copy(dl_dy + first * stride, dl_dy + last * stride, to + first * stride);
        pass.written(n, op.other);
      }
      T* dl_dz = gradient_of(tape, op.in);
      const auto activate = [&](std::size_t begin, std::size_t end) {
        rowwise::activate_gradient<T>({begin, end, out.width, stride}, op.activation, x, bias, dl_dy, dl_dz);
      };
      if (pass.whole() && pass.trains(op.bias)) return pass.bias_of(op, n, dl_dz, activate);
      for_rows(ex, first, last, kPlain * stride, activate);
      return pass.bias_of(op, n, dl_dz);
    }
    case OpKind::jump_max: {
      const std::uint32_t* winner = tape.workspace_.template at<std::uint32_t>(memory.a);
      for (std::size_t k = 0; k < op.ins.size(); ++k) {
        if (!tape.needed_[op.ins[k]]) continue;
        T* to = pass.target(n, op.ins[k]);
        for_rows(ex, first, last, kPlain * stride, [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin * stride; i < end * stride; ++i) to[i] = winner[i] == k ? dl_dy[i] : T(0);
        });
        pass.written(n, op.ins[k]);
      }
      return;
    }
    case OpKind::readout:
      if (!tape.needed_[op.in]) return;
      backward_readout(ex, op.readout, pass.batch, pass.part, dl_dy, stride,
                       tape.workspace_.template at<std::uint32_t>(memory.a), pass.target(n, op.in));
      return pass.written(n, op.in);
  }
}

// A tensor's gradient is needed when something below it learns or is asked for; it is there once one of the operations
// that read the tensor has had its turn.
template <class T>
void GraphNetwork<T>::find_needed(const Step& step, bool inputs, Tape& tape) const {
  const auto trains = [&](std::size_t slice) { return slice != kNone && !step.is_frozen(slice); };
  auto& needed = tape.needed_;
  std::fill(needed.begin(), needed.end(), 0);
  needed[0] = inputs;
  for (const Op& op : ops_) {
    bool any = inputs;
    for (const std::size_t s : {op.weight, op.bias, op.edge_weight, op.epsilon}) any = any || trains(s);
    for (const std::size_t t : {op.in, op.other}) any = any || (t != kNone && needed[t]);
    for (const std::size_t t : op.ins) any = any || needed[t];
    needed[op.out] = needed[op.out] || any;
  }
  const std::size_t width = tensors_.size();
  std::uint8_t* now = tape.graded_.data() + ops_.size() * width;  // one row more: what is there in the end
  std::fill_n(now, width, 0);
  now[last_] = 1;
  for (std::size_t n = ops_.size(); n-- > 0;) {
    std::copy_n(now, width, tape.graded_.data() + n * width);
    const Op& op = ops_[n];
    if (!needed[op.out]) continue;
    const bool always = op.kind == OpKind::attention || op.kind == OpKind::norm || op.kind == OpKind::activate;
    if (op.in != kNone && (always || needed[op.in])) now[op.in] = 1;
    if (op.other != kNone && (op.kind == OpKind::attention || needed[op.other])) now[op.other] = 1;
    for (const std::size_t t : op.ins)
      if (needed[t]) now[t] = 1;
  }
}

// The gradient of the network's output goes to its tensor. Backward multiplies with transposed weights; they are turned
// before any gradient is told, as weights may change then.
template <class T>
void GraphNetwork<T>::begin_backward(const Exec& ex, const Call& call, View<const T, 2> dl_dy) const {
  const std::size_t rows = call.batch.size, stride = tensors_[last_].stride,
                    pieces = task_count(rows * kPlain * stride);
  T* top = gradient_of(call.tape, last_);
  ex.parallel_for(pieces + ops_.size(), [&](std::size_t t, unsigned) {
    if (t < pieces) {
      for (std::size_t i = rows * t / pieces; i < rows * (t + 1) / pieces; ++i)
        for (std::size_t c = 0; c < stride; ++c) top[i * stride + c] = c < options_.outputs ? dl_dy(i, c) : T(0);
      return;
    }
    const std::size_t n = t - pieces;
    const Op& op = ops_[n];
    if (op.kind != OpKind::dense || !call.tape.needed_[op.in] || !call.tape.needed_[op.out]) return;
    const Tensor &in = tensors_[op.in], &out = tensors_[op.out];
    dense::transpose<T>(weights(call.arrays, op.weight), in.width, out.width, out.stride,
                        call.tape.workspace_.template at<T>(call.tape.op_[n].transposed));
  });
}

template <class T>
void GraphNetwork<T>::backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const {
  const Step& step = call.step;
  const ModelArrays<T>& arrays = call.arrays;
  const Batch& batch = call.batch;
  Tape& tape = call.tape;
  const auto fail = [](const std::string& m) { throw Exception(ErrorCode::invalid_input, m); };
  if (!tape.limits_.backward) fail("the tape was made for forward passes only");
  if (tape.batch_rows_ != batch.size || tape.batch_nodes_ != batch.nodes)
    fail("backward needs the tape of the forward pass of the same batch");
  const bool inputs = !call.dl_dx.empty();
  if (inputs && (!tape.limits_.input_gradient || options_.sparse))
    fail("dl_dx was asked for, but the tape was not made for it or the features are sparse");
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
  find_needed(step, inputs, tape);
  begin_backward(ex, {step, arrays, batch, tape}, call.dl_dy);
  run_ops(ex, batch, tape, Order::backwards, [&](const Exec& who, const Part& part, std::size_t n, unsigned worker) {
    if (!tape.needed_[ops_[n].out]) return;
    const ProfileScope scope(ex, tape.op_[n].backward_phase, worker);
    backward_op({*this, who, step, arrays, batch, tape, call.gradient, call.sink, inputs, part}, n);
  });
  const Pass all{
      *this, ex, step, arrays, batch, tape, call.gradient, call.sink, inputs, {0, batch.nodes, 0, batch.graphs}};
  if (!all.whole()) all.sum_parameters();
  if (!inputs) return;
  const T* x = gradient_of(tape, 0);
  for_rows(ex, 0, batch.nodes, kPlain * options_.inputs, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t c = 0; c < options_.inputs; ++c) call.dl_dx(i, c) = x[i * tensors_[0].stride + c];
  });
}

#define GRADLOOM_INSTANTIATE(T)                                                                                \
  template T* GraphNetwork<T>::gradient_of(Tape&, std::size_t) const;                                          \
  template void GraphNetwork<T>::Pass::block_products(const Op&, std::size_t, std::size_t, std::size_t) const; \
  template void GraphNetwork<T>::backward(const Exec&, const BackwardCall<T, Batch, Tape>&) const;
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::graph
