// The forward pass of a graph network, operation by operation.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "gradloom/base/error.h"
#include "gradloom/base/hash.h"
#include "gradloom/exec/profile.h"
#include "gradloom/models/graph/pass.h"

namespace gradloom::graph {

using dense::Start;

template <class T>
kernels::rowwise::Dropout GraphNetwork<T>::dropout(const Step& step, double probability, std::size_t op,
                                                   std::uint32_t sample) {
  return {probability, step.seed, step.epoch, static_cast<std::uint32_t>(sample * 256 + op)};
}

template <class T>
const T* GraphNetwork<T>::value(const Tape& tape, std::size_t t) const {
  return t == 0 ? tape.x_ : tape.workspace_.template at<T>(tape.value_[t]);
}

template <class T>
std::size_t GraphNetwork<T>::rows_of(const Batch& batch, std::size_t t) const {
  return tensors_[t].graphs ? batch.graphs : batch.nodes;
}

template <class T>
const T* GraphNetwork<T>::weights(const ModelArrays<T>& arrays, std::size_t slice) const {
  return slice == kNone ? nullptr : arrays.parameters.data() + parameters_[slice].offset;
}

template <class T>
void GraphNetwork<T>::find_hubs(std::span<const std::uint32_t> ptr, Tape& tape, typename Tape::HubList& list) const {
  list.count = list.segments = 0;
  std::uint32_t* rows = tape.workspace_.template at<std::uint32_t>(list.rows);
  std::uint32_t* starts = tape.workspace_.template at<std::uint32_t>(list.starts);
  for (std::size_t i = 0; i + 1 < ptr.size(); ++i) {
    if (ptr[i + 1] - ptr[i] <= message::kSegment) continue;
    rows[list.count] = static_cast<std::uint32_t>(i);
    starts[list.count++] = static_cast<std::uint32_t>(list.segments);
    list.segments += message::hub_segments(ptr.data(), i);
  }
  starts[list.count] = static_cast<std::uint32_t>(list.segments);
}

template <class T>
void GraphNetwork<T>::run_gather(const Exec& ex, Tape& tape, const message::Gather<T>& g, std::size_t first,
                                 std::size_t last, const typename Tape::HubList& hubs,
                                 FunctionRef<void(std::size_t, std::size_t)> then) const {
  const std::uint32_t* hub = tape.workspace_.template at<std::uint32_t>(hubs.rows);
  const auto before = [&](std::size_t row) {
    return static_cast<std::size_t>(std::lower_bound(hub, hub + hubs.count, row) - hub);
  };
  if (const std::size_t from = before(first), to = before(last); from < to) {
    const std::uint32_t* starts = tape.workspace_.template at<std::uint32_t>(hubs.starts);
    T* sums = tape.workspace_.template at<T>(tape.segments_);
    ex.parallel_for(starts[to] - starts[from], [&](std::size_t t, unsigned) {
      const std::size_t s = starts[from] + t;
      const std::size_t k = static_cast<std::size_t>(std::upper_bound(starts, starts + hubs.count, s) - starts) - 1;
      T* own = sums + starts[k] * tape.widest_;
      message::gather_segment<T>(ex.variant(), g, hub[k], s - starts[k], own + (s - starts[k]) * g.width);
    });
    ex.parallel_for(to - from, [&](std::size_t t, unsigned) {
      message::finish_hub<T>(g, hub[from + t], sums + starts[from + t] * tape.widest_);
    });
  }
  for_arcs(ex, g.ptr, first, last, kGathered * g.width, [&](std::size_t begin, std::size_t end) {
    message::gather_rows<T>(ex.variant(), g, begin, end);
    then(begin, end);
  });
}

template <class T>
bool GraphNetwork<T>::is_activated(std::size_t n) const {
  const bool by_rows = ops_[n].kind == OpKind::dense || ops_[n].kind == OpKind::gather;
  return by_rows && n + 1 < ops_.size() && ops_[n + 1].kind == OpKind::activate && ops_[n + 1].in == ops_[n].out;
}

template <class T>
void GraphNetwork<T>::activate_rows(const Call& call, std::size_t n, std::size_t begin, std::size_t end) const {
  const Op& op = ops_[n];
  const Tensor& out = tensors_[op.out];
  const T *x = value(call.tape, op.in), *bias = weights(call.arrays, op.bias);
  const T* residual = op.other == kNone ? nullptr : value(call.tape, op.other);
  rowwise::activate<T>({begin, end, out.width, out.stride}, op.activation, x, bias, residual,
                       call.tape.workspace_.template at<T>(call.tape.value_[op.out]));
}

// Every graph draws for itself, so it does not matter which others are in its batch.
template <class T>
void GraphNetwork<T>::run_dropout(const Exec& ex, const Call& call, const Part& part, std::size_t n) const {
  const Op& op = ops_[n];
  const Tensor& out = tensors_[op.out];
  const Batch& batch = call.batch;
  const T* x = value(call.tape, op.in);
  T* y = call.tape.workspace_.template at<T>(call.tape.value_[op.out]);
  std::uint8_t* keep = call.tape.workspace_.template at<std::uint8_t>(call.tape.op_[n].a);
  const auto drop_rows = [&](std::uint32_t sample, std::size_t begin, std::size_t end) {
    const auto drop = dropout(call.step, op.probability, n, sample);
    const std::size_t at = begin * out.stride;
    for_ranges(ex, (end - begin) * out.stride, [&](std::size_t from, std::size_t to) {
      drop.keep(from, to, keep + at);
      rowwise::apply_dropout<T>(x + at, keep + at, static_cast<T>(drop.scale()), from, to, y + at);
    });
  };
  if (options_.task == GraphTask::node) return drop_rows(call.step.index, 0, batch.nodes);
  for (std::size_t g = part.first_graph; g < part.last_graph; ++g)
    drop_rows(batch.sample_of(g), out.graphs ? g : batch.graph_ptr[g], out.graphs ? g + 1 : batch.graph_ptr[g + 1]);
}

template <class T>
const T* scale_of(NodeScale scale, const GraphBatch<T>& batch) {
  return scale == NodeScale::root        ? batch.root.data()
         : scale == NodeScale::with_self ? batch.with_self.data()
         : scale == NodeScale::without   ? batch.without.data()
                                         : nullptr;
}

template <class T>
message::Gather<T> GraphNetwork<T>::gather_of(const Op& op, const Batch& batch, const ModelArrays<T>& arrays) const {
  message::Gather<T> g{.ptr = batch.arcs.ptr.data(), .source = batch.arcs.index.data()};
  if (!batch.edge_weight.empty()) g.value = batch.edge_weight.data();
  g.row_scale = scale_of(op.row, batch);
  g.source_scale = scale_of(op.source, batch);
  g.self = static_cast<T>(op.self);
  if (op.epsilon != kNone) g.self = g.self + *weights(arrays, op.epsilon);
  return g;
}

template <class T>
message::Attention<T> GraphNetwork<T>::attention_of(const Op& op, std::size_t n, const Batch& batch,
                                                    const ModelArrays<T>& arrays, Tape& tape) const {
  message::Attention<T> p;
  p.ptr = batch.arcs.ptr.data(), p.source = batch.arcs.index.data();
  p.out_ptr = batch.arcs.out_ptr.data(), p.out_target = batch.arcs.out_index.data();
  p.slot = batch.arcs.out_slot.data();
  p.heads = op.heads, p.channels = tensors_[op.out].width / op.heads, p.stride = tensors_[op.out].stride;
  p.left = value(tape, op.in), p.right = value(tape, op.other), p.a = weights(arrays, op.weight);
  if (op.edge_weight != kNone) {
    p.edge_features = options_.edge_features, p.edge_stride = batch.edge_x.stride(0);
    p.edge = batch.edge_x.data(), p.edge_weight = weights(arrays, op.edge_weight);
  }
  p.alpha = tape.workspace_.template at<T>(tape.op_[n].a), p.self_alpha = tape.workspace_.template at<T>(tape.op_[n].b);
  p.y = tape.workspace_.template at<T>(tape.value_[op.out]);
  return p;
}

template <class T>
void GraphNetwork<T>::forward_op(const Exec& ex, const Call& call, const Part& part, std::size_t n) const {
  const Step& step = call.step;
  const ModelArrays<T>& arrays = call.arrays;
  const Batch& batch = call.batch;
  Tape& tape = call.tape;
  const Op& op = ops_[n];
  const auto& memory = tape.op_[n];
  const Tensor& out = tensors_[op.out];
  const std::size_t first = part.begin(out), last = part.end(out), stride = out.stride;
  T* y = tape.workspace_.template at<T>(tape.value_[op.out]);
  const bool training = step.mode == Mode::train;
  // Rows that are still in the cache are activated at once.
  const auto activate_next = [&](std::size_t begin, std::size_t end) {
    if (is_activated(n)) activate_rows(call, n + 1, begin, end);
  };
  switch (op.kind) {
    case OpKind::dropout: {
      const T* x = value(tape, op.in);
      if (training) return run_dropout(ex, call, part, n);
      std::copy(x + first * stride, x + last * stride, y + first * stride);
      return;
    }
    case OpKind::dense: {
      const Tensor& in = tensors_[op.in];
      dense::Product<T> p{.inner = in.width, .width = stride, .x = value(tape, op.in), .x_row = in.stride};
      p.w = weights(arrays, op.weight), p.w_stride = stride, p.bias = weights(arrays, op.bias);
      p.y_stride = stride, p.start = op.start;
      for_rows(ex, first, last, in.width * stride, [&](std::size_t begin, std::size_t end) {
        auto some = p;
        some.rows = end - begin, some.x += begin * in.stride, some.y = y + begin * stride;
        dense::multiply<T>(ex.variant(), some);
        activate_next(begin, end);
      });
      return;
    }
    case OpKind::sparse: {
      message::Gather<T> g{.ptr = batch.features.ptr.data(), .source = batch.features.index.data()};
      g.value = batch.feature_value.data();
      if (training && op.probability > 0) {
        const auto drop = dropout(step, op.probability, n, step.index);
        std::uint8_t* keep = tape.workspace_.template at<std::uint8_t>(memory.a);
        T* values = tape.workspace_.template at<T>(memory.b);
        for_ranges(ex, batch.feature_value.size(), [&](std::size_t begin, std::size_t end) {
          drop.keep(begin, end, keep);
          rowwise::apply_dropout<T>(batch.feature_value.data(), keep, static_cast<T>(drop.scale()), begin, end, values);
        });
        g.value = values;
      }
      g.x = weights(arrays, op.weight), g.x_stride = stride, g.width = stride, g.y_stride = stride;
      // A second product of the same features is added to the first one.
      T* scratch = tape.workspace_.template at<T>(tape.scratch_);
      g.y = op.start == Start::y ? scratch : y;
      run_gather(ex, tape, g, first, last, tape.feature_in_);
      if (op.start == Start::y)
        for_rows(ex, first, last, kPlain * stride, [&](std::size_t begin, std::size_t end) {
          rowwise::add<T>({begin, end, out.width, stride}, scratch, y);
        });
      return;
    }
    case OpKind::gather: {
      auto g = gather_of(op, batch, arrays);
      g.x = value(tape, op.in), g.x_stride = stride, g.y = y, g.y_stride = stride, g.width = stride;
      return run_gather(ex, tape, g, first, last, tape.in_, activate_next);
    }
    case OpKind::edge_gather: {
      message::Gather<T> g = gather_of(op, batch, arrays);
      g.source = nullptr, g.source_scale = nullptr, g.self = 0;
      g.x = batch.edge_x.data(), g.x_stride = batch.edge_x.stride(0);
      g.y = y, g.y_stride = stride, g.width = stride;
      return run_gather(ex, tape, g, first, last, tape.in_);
    }
    case OpKind::maximum: {
      message::Maximum<T> m{batch.arcs.ptr.data(),
                            batch.arcs.index.data(),
                            value(tape, op.in),
                            stride,
                            stride,
                            stride,
                            y,
                            tape.workspace_.template at<std::uint32_t>(memory.a)};
      for_arcs(ex, m.ptr, first, last, kGathered * stride,
               [&](std::size_t begin, std::size_t end) { message::max_rows<T>(m, begin, end); });
      return;
    }
    case OpKind::attention: {
      const auto p = attention_of(op, n, batch, arrays, tape);
      for_arcs(ex, p.ptr, first, last, 4 * kGathered * stride,
               [&](std::size_t begin, std::size_t end) { message::attend<T>(p, begin, end); });
      return;
    }
    case OpKind::norm:
      return forward_norm(ex, *this, {step, arrays, op, first, last, out.width, stride}, value(tape, op.in),
                          tape.workspace_.template at<T>(memory.a), tape.workspace_.template at<T>(memory.b),
                          tape.workspace_.template at<T>(tape.blocks_), y);
    case OpKind::activate:
      if (n > 0 && is_activated(n - 1)) return;
      for_rows(ex, first, last, kPlain * stride,
               [&](std::size_t begin, std::size_t end) { activate_rows(call, n, begin, end); });
      return;
    case OpKind::jump_max: {
      std::uint32_t* winner = tape.workspace_.template at<std::uint32_t>(memory.a);
      for_rows(ex, first, last, kPlain * stride, [&](std::size_t first_row, std::size_t last_row) {
        const std::size_t begin = first_row * stride, end = last_row * stride;
        for (std::size_t k = 0; k < op.ins.size(); ++k) {
          const T* x = value(tape, op.ins[k]);
          for (std::size_t i = begin; i < end; ++i) {
            const bool wins = k == 0 || x[i] > y[i];
            y[i] = wins ? x[i] : y[i];
            winner[i] = wins ? static_cast<std::uint32_t>(k) : winner[i];
          }
        }
      });
      return;
    }
    case OpKind::readout:
      return forward_readout(ex, op.readout, batch, part, value(tape, op.in), stride,
                             tape.workspace_.template at<std::uint32_t>(memory.a), y);
  }
}

template <class T>
void GraphNetwork<T>::forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch,
                              Tape& tape, View<T, 2> y) const {
  const auto fail = [](const std::string& m) { throw Exception(ErrorCode::invalid_input, m); };
  if (batch.nodes > tape.nodes_ || batch.arc_count() > tape.arcs_ || batch.graphs > tape.graphs_)
    fail(fmt::format("the batch has {} nodes, {} arcs and {} graphs; the tape was made for {}, {} and {}", batch.nodes,
                     batch.arc_count(), batch.graphs, tape.nodes_, tape.arcs_, tape.graphs_));
  if (options_.sparse != batch.sparse() || batch.feature_value.size() > tape.entries_)
    fail("the features of the batch are not those that the network was made for");
  if (!options_.sparse && batch.nodes > 0 && batch.x.extent(1) != options_.inputs)
    fail(fmt::format("the nodes have {} features, the network {} inputs", batch.x.extent(1), options_.inputs));
  if (options_.edge_features > 0 && batch.arc_count() > 0 && batch.edge_x.extent(1) != options_.edge_features)
    fail(fmt::format("the edges have {} features, the network {}", batch.edge_x.extent(1), options_.edge_features));
  if (!batch.edge_weight.empty() && !takes_edge_weights(options_.kind))
    fail("the edges have weights, which layers of attention or of maxima would not look at");
  tape.batch_nodes_ = batch.nodes, tape.batch_rows_ = batch.size;
  tape.trained_ = step.mode == Mode::train;
  tape.seen_ = batch;
  find_hubs(batch.arcs.ptr, tape, tape.in_);
  find_hubs(batch.arcs.out_ptr, tape, tape.out_);
  if (options_.sparse) {
    find_hubs(batch.features.ptr, tape, tape.feature_in_);
    find_hubs(batch.features.out_ptr, tape, tape.feature_out_);
  } else if (batch.x.stride(0) == tensors_[0].stride) {
    tape.x_ = batch.x.data();
  } else {
    T* x = tape.workspace_.template at<T>(tape.value_[0]);
    for (std::size_t i = 0; i < batch.nodes; ++i)
      for (std::size_t c = 0; c < tensors_[0].stride; ++c)
        x[i * tensors_[0].stride + c] = c < options_.inputs ? batch.x(i, c) : T(0);
    tape.x_ = x;
  }
  plan(batch, tape);
  const Call call{step, arrays, batch, tape};
  for (std::size_t n = 0; n < ops_.size(); ++n)
    if (ops_[n].kind == OpKind::attention) tape.attention_[n] = attention_of(ops_[n], n, batch, arrays, tape);
  run_ops(ex, batch, tape, Order::forwards, [&](const Exec& who, const Part& part, std::size_t n, unsigned worker) {
    const ProfileScope scope(ex, tape.op_[n].forward_phase, worker);
    forward_op(who, call, part, n);
  });
  const T* from = value(tape, last_);
  for_rows(ex, 0, batch.size, kPlain * options_.outputs, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      std::copy_n(from + i * tensors_[last_].stride, options_.outputs, y.row(i));
  });
}

template <class T>
std::uint64_t GraphNetwork<T>::branches(const Tape& tape) const {
  Hash hash;
  for (std::size_t n = 0; n < ops_.size(); ++n) {
    const Op& op = ops_[n];
    const Tensor& out = tensors_[op.out];
    const std::size_t size = rows_of(tape.seen_, op.out) * out.stride;
    if (op.kind == OpKind::activate && op.activation == Activation::relu) {
      // With a residual the output hides the sign; it is told by the difference.
      const T* y = value(tape, op.out);
      const T* residual = op.other == kNone ? nullptr : value(tape, op.other);
      for (std::size_t i = 0; i < size; ++i) hash.mix((residual ? y[i] != residual[i] : y[i] > T(0)) ? 2 : 1);
    }
    if (op.kind == OpKind::maximum || op.kind == OpKind::jump_max ||
        (op.kind == OpKind::readout && op.readout == Readout::max)) {
      const std::uint32_t* winner = tape.workspace_.template at<std::uint32_t>(tape.op_[n].a);
      for (std::size_t i = 0; i < size; ++i) hash.mix(winner[i]);
    }
    if (op.kind == OpKind::attention) hash.mix(message::attention_branches<T>(tape.attention_[n], tape.batch_nodes_));
  }
  return hash.value();
}

#define GRADLOOM_INSTANTIATE(T)                                                                                      \
  template kernels::rowwise::Dropout GraphNetwork<T>::dropout(const Step&, double, std::size_t, std::uint32_t);      \
  template const T* GraphNetwork<T>::value(const Tape&, std::size_t) const;                                          \
  template std::size_t GraphNetwork<T>::rows_of(const Batch&, std::size_t) const;                                    \
  template const T* GraphNetwork<T>::weights(const ModelArrays<T>&, std::size_t) const;                              \
  template void GraphNetwork<T>::run_gather(const Exec&, Tape&, const message::Gather<T>&, std::size_t, std::size_t, \
                                            const typename Tape::HubList&,                                           \
                                            FunctionRef<void(std::size_t, std::size_t)>) const;                      \
  template message::Gather<T> GraphNetwork<T>::gather_of(const Op&, const Batch&, const ModelArrays<T>&) const;      \
  template message::Attention<T> GraphNetwork<T>::attention_of(const Op&, std::size_t, const Batch&,                 \
                                                               const ModelArrays<T>&, Tape&) const;                  \
  template void GraphNetwork<T>::forward(const Exec&, const Step&, const ModelArrays<T>&, const Batch&, Tape&,       \
                                         View<T, 2>) const;                                                          \
  template std::uint64_t GraphNetwork<T>::branches(const Tape&) const;
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::graph
