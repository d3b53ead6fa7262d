#include "gradloom/models/graph/network.h"

#include <fmt/format.h>

#include <cmath>

#include "gradloom/base/error.h"
#include "gradloom/base/random.h"
#include "gradloom/exec/profile.h"
#include "gradloom/models/graph/ops/activate.h"
#include "gradloom/models/graph/ops/attention.h"
#include "gradloom/models/graph/ops/dense.h"
#include "gradloom/models/graph/ops/dropout.h"
#include "gradloom/models/graph/ops/gather.h"
#include "gradloom/models/graph/ops/maximum.h"
#include "gradloom/models/graph/ops/norm.h"
#include "gradloom/models/graph/ops/readout.h"
#include "gradloom/models/graph/ops/sparse.h"

namespace gradloom::graph {

namespace {

constexpr std::size_t kWidest = 1 << 20;

std::size_t clamped(const std::vector<std::size_t>& v, std::size_t i) { return v[std::min(i, v.size() - 1)]; }

}  // namespace

template <class T>
void GraphLimits::include(const GraphDataset<T>& data) {
  const std::size_t graphs = data.arrays().graphs, count = std::max(nodes.size(), graphs + 1);
  std::vector<std::size_t> more_nodes, more_arcs;
  for (std::size_t b = 0; b < count; ++b) {
    more_nodes.push_back(std::max(clamped(nodes, b), data.largest_nodes(b)));
    more_arcs.push_back(std::max(clamped(arcs, b), data.largest_arcs(b)));
  }
  nodes = std::move(more_nodes), arcs = std::move(more_arcs);
  entries = std::max(entries, data.arrays().feature_value.size());
}

BatchSizes GraphLimits::batch_of(std::size_t graphs, std::size_t pairs) const {
  return {clamped(nodes, graphs), graphs, pairs, clamped(arcs, graphs), entries};
}

void validate(const NetworkOptions& o) {
  if (o.inputs == 0 || o.outputs == 0)
    throw_invalid(fmt::format("a network from {} features to {} outputs", o.inputs, o.outputs));
  const bool headless = o.task == GraphTask::node && o.jumping == Jumping::none;
  if (o.hidden.empty() && !headless)
    throw_invalid("hidden is empty; this network needs at least one message passing layer");
  for (const std::size_t w : o.hidden) {
    if (w == 0 || w > kWidest)
      throw_invalid(fmt::format("a hidden layer has width {}; it must be 1 to {}", w, kWidest));
    if (o.kind == LayerKind::gat && (o.heads == 0 || w % o.heads != 0))
      throw_invalid(fmt::format("a hidden layer of width {} cannot be divided evenly among {} heads", w, o.heads));
    if (o.jumping == Jumping::max && w != o.hidden.front())
      throw_invalid("jumping knowledge by maximum needs hidden layers of equal widths");
  }
  for (const double p : {o.dropout, o.head_dropout})
    if (!(p >= 0 && p < 1)) throw_invalid(fmt::format("dropout is {}; it must be at least 0 and below 1", p));
  if (o.kind == LayerKind::sage_max && o.edge_features > 0) throw_invalid("a maximum layer cannot use edge features");
  if (o.kind == LayerKind::sage_max && o.sparse) throw_invalid("a maximum layer cannot use sparse features");
  if (o.sparse && o.task == GraphTask::graph) throw_invalid("graph tasks need dense features");
}

template <class T>
Tensor GraphNetwork<T>::add_tensor(std::size_t width, RowsAre rows, bool recomputed) {
  tensors_.push_back({tensors_.size(), rows, width, dense::padded(width), recomputed});
  return tensors_.back();
}

namespace {

SliceRef ref(const Slices& slices, std::size_t index) {
  const Slice& s = slices[index];
  return {index, s.offset, s.stored_size(), s.stored_last};
}

}  // namespace

template <class T>
SliceRef GraphNetwork<T>::add_parameter(const std::string& name, std::vector<std::size_t> shape, Initial initial) {
  const std::size_t stored = initial.scalar ? 1 : dense::padded(shape.back());
  if (initial.glorot) initial.limit = std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1]));
  initial_.push_back(initial);
  return ref(parameters_, parameters_.add(prefix_ + name, std::move(shape), stored));
}

template <class T>
Tensor GraphNetwork<T>::place(std::shared_ptr<Op<T>> op) {
  op->place(ops_.size(), ops_.empty() ? nullptr : ops_.back().get());
  op->list_sums(sums_);
  const Tensor& out = op->out();
  const OpCost cost = op->cost();
  if (out.rows != RowsAre::pairs) {
    node_work_ += (4 + (out.rows == RowsAre::nodes ? cost.row : 0)) * out.stride;
    arc_work_ += cost.arc * out.stride;
  }
  ops_.push_back(std::move(op));
  return last_ = out;
}

template <class T>
Tensor GraphNetwork<T>::add_dense(const std::string& name, const Tensor& in, std::size_t width, const Tensor& onto,
                                  const std::string& bias) {
  const SliceRef weight = add_parameter(name, {in.width, width}, {.glorot = true});
  const SliceRef shift = bias.empty() ? SliceRef{} : add_parameter(bias, {width});
  const Tensor out = onto ? onto : add_tensor(width, in.rows);
  const dense::Start start = onto ? dense::Start::y : shift ? dense::Start::bias : dense::Start::zero;
  if (in.id == 0 && options_.sparse)
    return add<SparseOp>(name, {.out = out, .weight = weight, .start = start, .dropout = options_.dropout});
  return add<DenseOp>(name, {.in = in, .out = out, .weight = weight, .bias = shift, .start = start});
}

template <class T>
Tensor GraphNetwork<T>::add_norm(const std::string& name, const Tensor& in) {
  const SliceRef gain = add_parameter(name + ".gain", {in.width}, {.constant = 1.0});
  const SliceRef shift = add_parameter(name + ".shift", {in.width});
  const Tensor out = add_tensor(in.width, in.rows);
  if (options_.norm == Norm::layer) return add<LayerNormOp>(name, {.in = in, .out = out, .gain = gain, .shift = shift});
  const SliceRef mean = ref(buffers_, buffers_.add(name + ".mean", {in.width}, in.stride));
  const SliceRef variance = ref(buffers_, buffers_.add(name + ".variance", {in.width}, in.stride));
  return add<BatchNormOp>(name,
                          {.in = in, .out = out, .gain = gain, .shift = shift, .mean = mean, .variance = variance});
}

template <class T>
Tensor GraphNetwork<T>::add_activation(const std::string& name, const Tensor& in, bool bias, Activation act,
                                       const Tensor& residual) {
  const SliceRef shift = bias ? add_parameter(name, {in.width}) : SliceRef{};
  const Tensor out = add_tensor(in.width, in.rows);
  return add<ActivateOp>(name, {.in = in, .residual = residual, .out = out, .bias = shift, .activation = act});
}

template <class T>
Tensor GraphNetwork<T>::add_dropout(const std::string& name, const Tensor& in, double probability) {
  return add<DropoutOp>(name, {.in = in, .out = add_tensor(in.width, in.rows), .probability = probability});
}

// The messages of one layer, before normalisation, bias and activation.
template <class T>
Tensor GraphNetwork<T>::add_messages(std::size_t l, const Tensor& in, std::size_t width) {
  const NetworkOptions& o = options_;
  const std::string name = fmt::format("layer.{}", l);
  const bool gin = o.kind == LayerKind::gin;
  if (o.kind == LayerKind::gat) {
    typename AttentionOp<T>::Fields f{.heads = width % o.heads == 0 ? o.heads : 1, .edge_features = o.edge_features};
    f.left = add_dense(name + ".left", in, width);
    f.right = add_dense(name + ".right", in, width);
    f.weight = add_parameter(name + ".attention", {width},
                             {.limit = std::sqrt(6.0 / static_cast<double>(width / f.heads + 1))});
    if (o.edge_features > 0)
      f.edge_weight = add_parameter(name + ".edge_weight", {o.edge_features, width}, {.glorot = true});
    f.out = add_tensor(width, RowsAre::nodes);
    return add<AttentionOp>(name + ".attention", f);
  }
  typename GatherOp<T>::Fields gather;
  if (o.kind == LayerKind::mean) gather.self = 1.0, gather.row = NodeScale::with_self;
  if (o.kind == LayerKind::gcn) gather.self = 1.0, gather.row = gather.source = NodeScale::root;
  if (o.kind == LayerKind::sage_mean) gather.row = NodeScale::without;
  if (gin) gather.self = 1.0, gather.epsilon = add_parameter(name + ".epsilon", {1}, {.scalar = true});
  const std::string weight = name + (gin ? ".weight_1" : ".weight");
  const auto gathered = [&](const Tensor& from) {
    gather.in = from, gather.out = add_tensor(from.width, from.rows);
    if (o.kind == LayerKind::sage_max) return add<MaximumOp>(name + ".messages", {.in = from, .out = gather.out});
    return add<GatherOp>(name + ".messages", gather);
  };
  // Sums and products commute; the narrower side is gathered.
  const bool product_first = o.kind != LayerKind::sage_max && ((in.id == 0 && o.sparse) || in.width > width);
  Tensor z = product_first ? gathered(add_dense(weight, in, width)) : add_dense(weight, gathered(in), width);
  if (o.kind == LayerKind::sage_mean || o.kind == LayerKind::sage_max) add_dense(name + ".self_weight", in, width, z);
  if (o.edge_features > 0) {
    const Tensor edges =
        add<EdgeGatherOp>(name + ".edges", {.out = add_tensor(o.edge_features, RowsAre::nodes), .row = gather.row});
    add_dense(name + ".edge_weight", edges, width, z);
  }
  if (!gin) return z;
  if (o.norm != Norm::none) z = add_norm(name + ".inner_norm", z);
  z = add_activation(name + ".bias_1", z, o.norm == Norm::none, o.activation, {});
  return add_dense(name + ".weight_2", z, width);
}

template <class T>
void GraphNetwork<T>::add_head(const std::vector<Tensor>& layers) {
  const NetworkOptions& o = options_;
  std::vector<Tensor> seen = layers;
  if (o.jumping == Jumping::none) seen = {layers.back()};
  if (o.jumping == Jumping::max && layers.size() > 1)
    seen = {add<JumpOp>("jump", {.ins = layers, .out = add_tensor(layers.front().width, RowsAre::nodes)})};
  Tensor y;
  for (std::size_t k = 0; k < seen.size(); ++k) {
    Tensor h = seen[k];
    if (o.task == GraphTask::graph)
      h = add<ReadoutOp>("readout", {.in = h, .out = add_tensor(h.width, RowsAre::graphs), .readout = o.readout});
    embedding_.push_back(h);
    if (o.head_dropout > 0) h = add_dropout("head.dropout", h, o.head_dropout);
    y = add_dense(seen.size() == 1 ? "head.weight" : fmt::format("head.weight_{}", k), h, o.outputs, y,
                  k == 0 ? "head.bias" : "");
  }
}

template <class T>
GraphNetwork<T>::GraphNetwork(NetworkOptions options, const std::string& prefix)
    : options_(std::move(options)),
      sum_by_(options_.task == GraphTask::node ? SumBy::rows : SumBy::graphs),
      prefix_(prefix) {
  const NetworkOptions& o = options_;
  validate(o);
  Tensor h = add_tensor(o.inputs, RowsAre::nodes);
  const bool headless = o.task == GraphTask::node && o.jumping == Jumping::none;
  std::vector<std::size_t> widths = o.hidden;
  std::vector<Tensor> layers;
  if (headless) widths.push_back(o.outputs);
  for (std::size_t l = 0; l < widths.size(); ++l) {
    const std::string name = fmt::format("layer.{}", l);
    const bool sparse = l == 0 && o.sparse, output = headless && l + 1 == widths.size();
    const Tensor in = o.dropout > 0 && !sparse ? add_dropout(name + ".dropout", h, o.dropout) : h;
    Tensor z = add_messages(l, in, widths[l]);
    const bool normed = o.norm != Norm::none && !output;
    if (normed) z = add_norm(name + ".norm", z);
    const bool around = o.residual && !output && h.width == widths[l] && !sparse;
    h = add_activation(name + ".bias", z, !normed, output ? Activation::none : o.activation, around ? h : Tensor{});
    layers.push_back(h);
  }
  if (!headless) add_head(layers);
  if (headless && layers.size() > 1) embedding_ = {layers[layers.size() - 2]};
  prefix_.clear();
}

template <class T>
void GraphNetwork<T>::initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const {
  std::fill(parameters.begin(), parameters.end(), T(0));
  std::fill(buffers.begin(), buffers.end(), T(0));
  for (std::size_t s = 0; s < initial_.size(); ++s) {
    const RandomStream random(seed, RandomUse::initialise, 0, static_cast<std::uint32_t>(s));
    std::uint32_t at = 0;
    const auto& [limit, constant, glorot, normal, scalar] = initial_[s];
    for_each_logical(parameters_[s], [&](std::size_t i) {
      parameters[i] = static_cast<T>(normal      ? random.normal(at++)
                                     : limit > 0 ? limit * (2 * random.uniform(at++) - 1)
                                                 : constant);
    });
  }
  for (const auto& op : ops_) op->initialise_buffers(buffers);
}

template <class T>
GraphTape<T> GraphNetwork<T>::make_tape(const Exec& ex, const TapeLimits& limits) const {
  if (limits.batch == 0) throw_invalid("a tape for batches of 0 rows was requested");
  const GraphLimits& l = options_.limits;
  return make_tape_for(ex, limits, l.batch_of(options_.task == GraphTask::node ? l.nodes.size() : limits.batch, 0),
                       l.batch_of(1, 0).nodes);
}

template <class T>
GraphTape<T> GraphNetwork<T>::make_tape_for(const Exec& ex, const TapeLimits& limits, const BatchSizes& most,
                                            std::size_t largest_graph) const {
  Tape t;
  t.limits_ = limits, t.most_ = most;
  Workspace& w = t.workspace_;
  Reservation<T> r{.limits = limits, .sum_by = sum_by_, .most = most, .workspace = w, .workers = ex.threads()};
  t.threads_ = ex.threads();
  if (sum_by_ == SumBy::parts && !limits.backward) {
    t.workers_ = ex.threads(), t.part_nodes_ = std::min(kPartGraphs, most.graphs) * largest_graph;
    r.most.nodes = t.workers_ * t.part_nodes_;
  }
  std::size_t shared = 0;
  for (const Tensor& tensor : tensors_)
    if (tensor.recomputed) shared = std::max(shared, r.rows(tensor) * tensor.stride);
  const std::size_t shared_value = w.reserve<T>(shared), shared_gradient = w.reserve<T>(limits.backward ? shared : 0);
  for (const Tensor& tensor : tensors_) {
    t.widest_ = std::max(t.widest_, tensor.stride);
    if (tensor.recomputed) {
      t.value_.push_back(shared_value), t.gradient_.push_back(shared_gradient);
      continue;
    }
    const std::size_t size = r.rows(tensor) * tensor.stride;
    const bool input = tensor.id == 0;
    // Dense inputs may come with other strides; sparse ones have no rows at all.
    t.value_.push_back(w.reserve<T>(input && options_.sparse ? 0 : size));
    t.gradient_.push_back(limits.backward && (!input || limits.input_gradient) ? w.reserve<T>(size) : 0);
  }
  t.op_.resize(ops_.size());
  for (const auto& op : ops_) {
    r.memory = &t.op_[op->index()];
    op->reserve(r);
    Profile* profile = ex.profile();
    t.forward_phase_.push_back(profile ? profile->phase("forward " + op->name()) : 0);
    t.backward_phase_.push_back(profile ? profile->phase("backward " + op->name()) : 0);
  }
  t.blocks_ = w.reserve<T>(r.blocks);
  const bool large = sum_by_ == SumBy::graphs && largest_graph > kGraphBlock;
  t.large_ = w.reserve<T>(large ? most.nodes / kGraphBlock * r.largest : 0);
  if (limits.backward || options_.sparse)
    t.scratch_ = w.reserve<T>(std::max({std::size_t{2}, most.nodes, most.graphs, most.pairs}) * t.widest_);
  if (limits.backward && limits.input_gradient) {
    t.edge_weight_ = w.reserve<T>(most.arcs);
    t.edge_x_ = w.reserve<T>(options_.edge_features > 0 ? most.arcs * dense::padded(options_.edge_features) : 0);
  }
  const std::size_t entries = std::max(most.arcs, most.entries);
  t.segments_ = w.reserve<T>(2 * (entries / message::kSegment + 1) * t.widest_);
  for (auto& list : t.hubs_) {
    list.rows = w.reserve<std::uint32_t>(entries / message::kSegment + 1);
    list.starts = w.reserve<std::uint32_t>(entries / message::kSegment + 2);
  }
  t.needed_.resize(tensors_.size());
  t.graded_.resize((ops_.size() + 1) * tensors_.size());
  t.wide_ = w.reserve<std::uint32_t>(2 * most.graphs + 2), t.packs_ = w.reserve<std::uint32_t>(2 * most.graphs + 2);
  t.first_block_ = w.reserve<std::uint32_t>(most.graphs + 1);
  w.allocate();
  return t;
}

template <class T>
Seen<T> GraphNetwork<T>::seen_by(const Tape& tape, const Op<T>& op) const {
  const auto& batch = std::visit([](const auto& b) -> const Batch& { return b; }, tape.seen_);
  return {batch, tape.arrays_, tape, op.index()};
}

template <class T>
View<const T, 2> GraphNetwork<T>::value(const Tape& tape, const Tensor& tensor) const {
  if (!tape.ran_ || tape.workers_ > 0) throw_invalid("the tape does not hold the rows of all nodes");
  const Seen<T> seen = seen_by(tape, *ops_.front());
  return {seen.value(tensor), {seen.rows(tensor), tensor.width}, {tensor.stride, 1}};
}

template <class T>
void GraphNetwork<T>::update_buffers(const Tape& tape, std::span<T> buffers) const {
  if (!tape.trained_) return;
  for (const auto& op : ops_) op->update_buffers(seen_by(tape, *op), buffers);
}

template <class T>
std::uint64_t GraphNetwork<T>::branches(const Tape& tape) const {
  Hash hash;
  for (const auto& op : ops_) op->branches(seen_by(tape, *op), hash);
  return hash.value();
}

template void GraphLimits::include<float>(const GraphDataset<float>&);
template void GraphLimits::include<double>(const GraphDataset<double>&);
template class GraphNetwork<float>;
template class GraphNetwork<double>;

}  // namespace gradloom::graph
