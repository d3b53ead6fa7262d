// The backward pass of a graph network, and the sums of its parameters' gradients.
#include "gradloom/base/error.h"
#include "gradloom/exec/profile.h"
#include "gradloom/models/graph/network.h"

namespace gradloom::graph {

// A tensor's gradient is needed when something below it learns or is asked for; it is there once one of the operations
// that read the tensor has had its turn.
template <class T>
void GraphNetwork<T>::find_needed(const Step& step, bool inputs, Tape& tape) const {
  auto& needed = tape.needed_;
  std::fill(needed.begin(), needed.end(), 0);
  needed[0] = inputs;
  for (const auto& op : ops_) {
    bool any = inputs;
    for (const SliceRef& s : op->parameters()) any = any || (s && !step.is_frozen(s.index));
    for (const OpInput& in : op->inputs()) any = any || needed[in.tensor.id];
    needed[op->out().id] = needed[op->out().id] || any;
  }
  const std::size_t width = tensors_.size();
  std::uint8_t* now = tape.graded_.data() + ops_.size() * width;  // one row more: what is there in the end
  std::fill_n(now, width, 0);
  now[last_.id] = 1;
  for (std::size_t n = ops_.size(); n-- > 0;) {
    std::copy_n(now, width, tape.graded_.data() + n * width);
    if (!needed[ops_[n]->out().id]) continue;
    for (const OpInput& in : ops_[n]->inputs())
      if (in.always_graded || needed[in.tensor.id]) now[in.tensor.id] = 1;
  }
}

// The gradient of the network's output goes to its tensor.
template <class T>
void GraphNetwork<T>::begin_backward(const Call& call, View<const T, 2> dl_dy) const {
  const std::size_t rows = call.batch.size, stride = last_.stride, pieces = task_count(rows * kElementwise * stride);
  T* top = call.tape.workspace_.template at<T>(call.tape.gradient_[last_.id]);
  call.ex.parallel_for(pieces + ops_.size(), [&](std::size_t t, unsigned) {
    if (t >= pieces) {
      const Op<T>& op = *ops_[t - pieces];
      return op.prepare_backward(pass_of(call, call.ex, whole_part(call.batch), op));
    }
    for (std::size_t i = rows * t / pieces; i < rows * (t + 1) / pieces; ++i)
      for (std::size_t c = 0; c < stride; ++c) top[i * stride + c] = c < last_.width ? dl_dy(i, c) : T(0);
  });
}

// Operations add to the gradients of what edges carry.
template <class T>
void GraphNetwork<T>::begin_edges(const Batch& batch, Tape& tape) const {
  if (!batch.edge_weight.empty()) {
    T* to = tape.workspace_.template at<T>(tape.edge_weight_);
    std::fill_n(to, batch.arc_count(), T(0));
    tape.edge_weight_gradient_ = {to, batch.arc_count()};
  }
  if (options_.edge_features > 0) {
    const std::size_t stride = dense::padded(options_.edge_features);
    T* to = tape.workspace_.template at<T>(tape.edge_x_);
    std::fill_n(to, batch.arc_count() * stride, T(0));
    tape.edge_feature_gradient_ = View<const T, 2>(to, {batch.arc_count(), options_.edge_features}, {stride, 1});
  }
}

template <class T>
void GraphNetwork<T>::sum_parameters(const Pass<T>& all) const {
  const auto pass_for = [&](const Op<T>& op) {
    Pass<T> p = all;
    p.op = op.index();
    return p;
  };
  const auto run = [&](std::size_t first, std::size_t last) {
    all.ex.parallel_for(last - first, [&](std::size_t t, unsigned worker) {
      const SumTask<T>& task = sums_[first + t];
      const ProfileScope scope(all.ex, all.memory.backward_phase_[task.op->index()], worker);
      task.op->sum(pass_for(*task.op), task, worker);
    });
  };
  if (all.memory.large_count_ == 0) return run(0, sums_.size());
  for (std::size_t first = 0, last; first < sums_.size(); first = last) {
    last = first;
    while (last < sums_.size() && sums_[last].op == sums_[first].op) ++last;
    sums_[first].op->sum_large_graphs(pass_for(*sums_[first].op));
    run(first, last);
  }
}

template <class T>
void GraphNetwork<T>::backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const {
  const Batch& batch = call.batch;
  Tape& tape = call.tape;
  if (!tape.limits_.backward) throw_invalid("the tape was made for forward passes only");
  const Batch& seen = seen_by(tape, *ops_.back()).batch;
  const auto* pairs = std::get_if<PairBatch<T>>(&tape.seen_);
  if (!tape.ran_ || seen.size != batch.size || seen.nodes != batch.nodes ||
      (pairs && pairs->first.data() != pairs_of(batch).first.data()))
    throw_invalid("backward needs the tape of the forward pass of the same batch");
  const bool inputs = !call.dl_dx.empty();
  if (inputs && (!tape.limits_.input_gradient || options_.sparse))
    throw_invalid("dl_dx was requested, but the tape was not made for it or the features are sparse");
  tape.edge_weight_gradient_ = {}, tape.edge_feature_gradient_ = {};
  if (inputs) begin_edges(batch, tape);
  find_needed(call.step, inputs, tape);
  const Call forward{ex, call.step, call.arrays, batch, tape};
  const reduce::TreeSum<T> tree = tree_of(call, leaves(batch));
  begin_backward(forward, call.dl_dy);
  const auto pass = [&](const Exec& who, const Part& part, const Op<T>& op) {
    Pass<T> p = pass_of(forward, who, part, op);
    p.tree = tree, p.leaves = leaves(batch), p.sink = call.sink, p.edges = inputs;
    return p;
  };
  run_ops(ex, batch, tape, Order::backwards, [&](const Exec& who, const Part& part, const Op<T>& op) {
    if (!tape.needed_[op.out().id]) return;
    const ProfileScope scope(ex, tape.backward_phase_[op.index()], part.worker);
    for (const OpInput& in : op.inputs())
      if (in.tensor.recomputed) ops_[op.index() - 1]->forward(pass(who, part, *ops_[op.index() - 1]));
    op.backward(pass(who, part, op));
  });
  if (sum_by_ != SumBy::rows) sum_parameters(pass(ex, whole_part(batch), *ops_.back()));
  if (!inputs) return;
  const Tensor& x = tensors_[0];
  const T* from = tape.workspace_.template at<T>(tape.gradient_[0]);
  for_rows(ex, 0, batch.nodes, kElementwise * x.width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t c = 0; c < x.width; ++c) call.dl_dx(i, c) = from[i * x.stride + c];
  });
}

template <class T>
void GraphNetwork<T>::tail_backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, std::size_t first,
                                    View<T, 2> dl_din) const {
  Tape& tape = call.tape;
  if (!tape.limits_.backward) throw_invalid("the tape was made for forward passes only");
  find_needed(call.step, false, tape);
  const Call forward{ex, call.step, call.arrays, call.batch, tape};
  const reduce::TreeSum<T> tree = tree_of(call, 1);
  begin_backward(forward, call.dl_dy);
  for (std::size_t k = ops_.size(); k-- > first;) {
    if (!tape.needed_[ops_[k]->out().id]) continue;
    const ProfileScope scope(ex, tape.backward_phase_[k]);
    Pass<T> p = pass_of(forward, ex, whole_part(call.batch), *ops_[k]);
    p.tree = tree;
    ops_[k]->backward(p);
  }
  const Tensor& read = ops_[first]->inputs()[0].tensor;
  if (!tape.needed_[read.id]) return;
  const T* from = tape.workspace_.template at<T>(tape.gradient_[read.id]);
  for (std::size_t i = 0; i < dl_din.extent(0); ++i) std::copy_n(from + i * read.stride, read.width, dl_din.row(i));
}

template class GraphNetwork<float>;
template class GraphNetwork<double>;

}  // namespace gradloom::graph
