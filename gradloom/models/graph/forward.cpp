// The forward pass of a graph network.
#include <fmt/format.h>

#include "gradloom/base/error.h"
#include "gradloom/base/hash.h"
#include "gradloom/exec/profile.h"
#include "gradloom/models/graph/network.h"

namespace gradloom::graph {

template <class T>
void GraphNetwork<T>::find_hubs(std::span<const std::uint32_t> ptr, Tape& tape, Hubs which) const {
  auto& list = tape.hubs_[static_cast<std::size_t>(which)];
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
void GraphNetwork<T>::check(const Call& call) const {
  const Batch& batch = call.batch;
  const Tape& tape = call.tape;
  const BatchSizes has = sizes_of(batch), most = tape.most_;
  if (most.pairs > 0 && (has.pairs > most.pairs || has.graphs > most.graphs))
    throw_invalid(fmt::format("the batch has {} pairs of {} graphs; the tape was made for {} and {}", has.pairs,
                              has.graphs, most.pairs, most.graphs));
  if (has.nodes > most.nodes || has.arcs > most.arcs || has.graphs > most.graphs)
    throw_invalid(fmt::format("the batch has {} nodes, {} arcs and {} graphs; the tape was made for {}, {} and {}",
                              has.nodes, has.arcs, has.graphs, most.nodes, most.arcs, most.graphs));
  if (spare_sums(std::max(has.nodes, has.pairs), 1) > 0 && call.ex.threads() > tape.threads_)
    throw_invalid(fmt::format("the tape was made for {} threads, not {}", tape.threads_, call.ex.threads()));
  if (tape.workers_ > 0 && call.ex.threads() > tape.workers_)
    throw_invalid(fmt::format("the tape was made for {} threads, not {}", tape.workers_, call.ex.threads()));
  if (options_.sparse != batch.sparse() || has.entries > most.entries)
    throw_invalid("the features of the batch are not those that the network was made for");
  if (!options_.sparse && batch.nodes > 0 && batch.x.extent(1) != options_.inputs)
    throw_invalid(fmt::format("the nodes have {} features, the network {} inputs", batch.x.extent(1), options_.inputs));
  if (options_.edge_features > 0 && batch.arc_count() > 0 && batch.edge_x.extent(1) != options_.edge_features)
    throw_invalid(
        fmt::format("the edges have {} features, the network {}", batch.edge_x.extent(1), options_.edge_features));
  if (!batch.edge_weight.empty() && !takes_edge_weights(options_.kind))
    throw_invalid("the edges have weights, which attention and maximum layers cannot use");
}

template <class T>
Pass<T> GraphNetwork<T>::pass_of(const Call& call, const Exec& ex, const Part& part, const Op<T>& op) const {
  const std::size_t held = call.tape.workers_ > 0 ? part.worker * call.tape.part_nodes_ : part.first_node;
  const auto shift = static_cast<std::ptrdiff_t>(held) - static_cast<std::ptrdiff_t>(part.first_node);
  return {{call.batch, call.arrays, call.tape, op.index(), shift}, ex, call.step, call.tape, sum_by_, part};
}

template <class T>
void GraphNetwork<T>::run_forward(const Call& call, View<T, 2> y) const {
  const Batch& batch = call.batch;
  Tape& tape = call.tape;
  tape.ran_ = true, tape.trained_ = call.step.mode == Mode::train;
  tape.arrays_ = call.arrays;
  find_hubs(batch.arcs.ptr, tape, Hubs::in);
  find_hubs(batch.arcs.out_ptr, tape, Hubs::out);
  const std::size_t stride = tensors_[0].stride;
  if (options_.sparse) {
    find_hubs(batch.features.ptr, tape, Hubs::feature_in);
    find_hubs(batch.features.out_ptr, tape, Hubs::feature_out);
  } else if (batch.x.stride(0) == stride) {
    tape.x_ = batch.x.data();
  } else {
    T* x = tape.workspace_.template at<T>(tape.value_[0]);
    for (std::size_t i = 0; i < batch.nodes; ++i)
      for (std::size_t c = 0; c < stride; ++c) x[i * stride + c] = c < options_.inputs ? batch.x(i, c) : T(0);
    tape.x_ = x;
  }
  plan(batch, tape);
  const Exec& ex = call.ex;
  run_ops(ex, batch, tape, Order::forwards, [&](const Exec& who, const Part& part, const Op<T>& op) {
    const ProfileScope scope(ex, tape.forward_phase_[op.index()], part.worker);
    op.forward(pass_of(call, who, part, op));
  });
  give_output(call, y);
}

template <class T>
void GraphNetwork<T>::give_output(const Call& call, View<T, 2> y) const {
  const T* from = seen_by(call.tape, *ops_.back()).value(last_);
  for_rows(call.ex, 0, call.batch.size, kElementwise * last_.width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) std::copy_n(from + i * last_.stride, last_.width, y.row(i));
  });
}

template <class T>
void GraphNetwork<T>::run_tail_forward(const Call& call, std::size_t first, View<const T, 2> in, View<T, 2> y) const {
  Tape& tape = call.tape;
  tape.ran_ = true, tape.trained_ = call.step.mode == Mode::train;
  tape.arrays_ = call.arrays;
  const Tensor& read = ops_[first]->inputs()[0].tensor;
  T* rows = tape.workspace_.template at<T>(tape.value_[read.id]);
  for (std::size_t i = 0; i < in.extent(0); ++i)
    for (std::size_t c = 0; c < read.stride; ++c) rows[i * read.stride + c] = c < read.width ? in(i, c) : T(0);
  for (std::size_t k = first; k < ops_.size(); ++k) {
    const ProfileScope scope(call.ex, tape.forward_phase_[k]);
    ops_[k]->forward(pass_of(call, call.ex, whole_part(call.batch), *ops_[k]));
  }
  give_output(call, y);
}

template class GraphNetwork<float>;
template class GraphNetwork<double>;

}  // namespace gradloom::graph
