#include "gradloom/models/graph/network.h"

#include <fmt/format.h>

#include <cmath>

#include "gradloom/base/error.h"
#include "gradloom/exec/profile.h"
#include "gradloom/models/graph/pass.h"

namespace gradloom::graph {

namespace {

constexpr std::size_t kWidest = 1 << 20;

[[noreturn]] void fail(const std::string& message) { throw Exception(ErrorCode::invalid_input, message); }

std::size_t clamped(const std::vector<std::size_t>& v, std::size_t i) { return v[std::min(i, v.size() - 1)]; }

std::size_t most_blocks(std::size_t rows) { return std::min<std::size_t>(64, rows / dense::kBlock + 1); }

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

void validate(const NetworkOptions& o) {
  if (o.inputs == 0 || o.outputs == 0)
    fail(fmt::format("a network from {} features to {} outputs", o.inputs, o.outputs));
  const bool headless = o.task == GraphTask::node && o.jumping == Jumping::none;
  if (o.hidden.empty() && !headless) fail("hidden is empty; this network needs at least one layer of messages");
  for (const std::size_t w : o.hidden) {
    if (w == 0 || w > kWidest) fail(fmt::format("a hidden layer has width {}; it must be 1 to {}", w, kWidest));
    if (o.kind == LayerKind::gat && (o.heads == 0 || w % o.heads != 0))
      fail(fmt::format("a hidden layer of width {} cannot be dealt evenly to {} heads", w, o.heads));
    if (o.jumping == Jumping::max && w != o.hidden.front()) fail("jumping by maximum needs hidden layers of one width");
  }
  for (const double p : {o.dropout, o.head_dropout})
    if (!(p >= 0 && p < 1)) fail(fmt::format("dropout is {}; it must be at least 0 and below 1", p));
  if (o.kind == LayerKind::sage_max && o.edge_features > 0) fail("a layer of maxima takes no edge features");
  if (o.kind == LayerKind::sage_max && o.sparse) fail("a layer of maxima takes no sparse features");
  if (o.sparse && o.task == GraphTask::graph) fail("graph tasks take dense features");
}

template <class T>
std::size_t GraphNetwork<T>::tensor(std::size_t width, bool graphs) {
  tensors_.push_back({graphs, width, dense::padded(width)});
  return tensors_.size() - 1;
}

template <class T>
std::size_t GraphNetwork<T>::parameter(std::string name, std::vector<std::size_t> shape) {
  const std::size_t stored = dense::padded(shape.back());
  return parameters_.add(std::move(name), std::move(shape), stored);
}

template <class T>
Op& GraphNetwork<T>::add(Op op) {
  ops_.push_back(std::move(op));
  return ops_.back();
}

template <class T>
std::size_t GraphNetwork<T>::add_dense(const std::string& name, std::size_t in, std::size_t width, std::size_t out) {
  Op op;
  op.kind = in == 0 && options_.sparse ? OpKind::sparse : OpKind::dense;
  op.name = name;
  op.weight = parameter(name, {tensors_[in].width, width});
  op.in = in;
  op.start = out == kNone ? dense::Start::zero : dense::Start::y;
  op.out = out == kNone ? tensor(width, tensors_[in].graphs) : out;
  if (op.kind == OpKind::sparse) op.probability = options_.dropout;
  return add(std::move(op)).out;
}

template <class T>
std::size_t GraphNetwork<T>::add_norm(const std::string& name, std::size_t in) {
  Op op;
  op.kind = OpKind::norm;
  op.name = name;
  op.norm = options_.norm;
  op.in = in;
  op.weight = parameter(name + ".gain", {tensors_[in].width});
  op.bias = parameter(name + ".shift", {tensors_[in].width});
  if (op.norm == Norm::batch) {
    op.mean = buffers_.add(name + ".mean", {tensors_[in].width}, tensors_[in].stride);
    op.variance = buffers_.add(name + ".variance", {tensors_[in].width}, tensors_[in].stride);
  }
  op.out = tensor(tensors_[in].width);
  return add(std::move(op)).out;
}

template <class T>
std::size_t GraphNetwork<T>::add_activation(const std::string& name, std::size_t in, bool bias, Activation act,
                                            std::size_t residual) {
  Op op;
  op.kind = OpKind::activate;
  op.name = name;
  op.in = in;
  op.other = residual;
  op.activation = act;
  if (bias) op.bias = parameter(name, {tensors_[in].width});
  op.out = tensor(tensors_[in].width);
  return add(std::move(op)).out;
}

// The messages of one layer, before normalisation, bias and activation.
template <class T>
std::size_t GraphNetwork<T>::add_messages(std::size_t l, std::size_t in, std::size_t width) {
  const NetworkOptions& o = options_;
  const std::string name = fmt::format("layer.{}", l);
  const bool gin = o.kind == LayerKind::gin;
  if (o.kind == LayerKind::gat) {
    Op op;
    op.kind = OpKind::attention;
    op.name = name + ".attention";
    op.heads = width % o.heads == 0 ? o.heads : 1;
    op.in = add_dense(name + ".left", in, width);
    op.other = add_dense(name + ".right", in, width);
    op.weight = parameter(name + ".attention", {width});
    if (o.edge_features > 0) op.edge_weight = parameter(name + ".edge_weight", {o.edge_features, width});
    op.out = tensor(width);
    return add(std::move(op)).out;
  }
  Op gather;
  gather.kind = o.kind == LayerKind::sage_max ? OpKind::maximum : OpKind::gather;
  gather.name = name + ".messages";
  if (o.kind == LayerKind::mean) gather.self = 1.0, gather.row = NodeScale::with_self;
  if (o.kind == LayerKind::gcn) gather.self = 1.0, gather.row = gather.source = NodeScale::root;
  if (o.kind == LayerKind::sage_mean) gather.row = NodeScale::without;
  if (gin) {
    gather.self = 1.0;
    gather.epsilon = parameters_.add(name + ".epsilon", {1});
  }
  const std::string weight = name + (gin ? ".weight_1" : ".weight");
  const auto gathered = [&](std::size_t from) {
    gather.in = from;
    gather.out = tensor(tensors_[from].width);
    return add(gather).out;
  };
  // Sums and products commute; the narrower side is gathered.
  const bool product_first = o.kind != LayerKind::sage_max && ((in == 0 && o.sparse) || tensors_[in].width > width);
  std::size_t z = product_first ? gathered(add_dense(weight, in, width)) : add_dense(weight, gathered(in), width);
  if (o.kind == LayerKind::sage_mean || o.kind == LayerKind::sage_max) add_dense(name + ".self_weight", in, width, z);
  if (o.edge_features > 0) {
    Op edges;
    edges.kind = OpKind::edge_gather;
    edges.name = name + ".edges";
    edges.row = gather.row;
    edges.out = tensor(o.edge_features);
    add_dense(name + ".edge_weight", add(edges).out, width, z);
  }
  if (!gin) return z;
  if (o.norm != Norm::none) z = add_norm(name + ".inner_norm", z);
  z = add_activation(name + ".bias_1", z, o.norm == Norm::none, o.activation, kNone);
  return add_dense(name + ".weight_2", z, width);
}

template <class T>
void GraphNetwork<T>::add_head(const std::vector<std::size_t>& layers) {
  const NetworkOptions& o = options_;
  std::vector<std::size_t> seen = layers;
  if (o.jumping == Jumping::none) seen = {layers.back()};
  if (o.jumping == Jumping::max && layers.size() > 1) {
    Op op;
    op.kind = OpKind::jump_max;
    op.name = "jump";
    op.ins = layers;
    op.out = tensor(tensors_[layers.front()].width);
    seen = {add(std::move(op)).out};
  }
  std::size_t y = kNone;
  for (std::size_t k = 0; k < seen.size(); ++k) {
    std::size_t h = seen[k];
    if (o.task == GraphTask::graph) {
      Op op;
      op.kind = OpKind::readout;
      op.name = "readout";
      op.readout = o.readout;
      op.in = h;
      op.out = tensor(tensors_[h].width, true);
      h = add(std::move(op)).out;
    }
    if (o.head_dropout > 0) {
      Op op;
      op.kind = OpKind::dropout;
      op.name = "head.dropout";
      op.probability = o.head_dropout;
      op.in = h;
      op.out = tensor(tensors_[h].width, tensors_[h].graphs);
      h = add(std::move(op)).out;
    }
    y = add_dense(seen.size() == 1 ? "head.weight" : fmt::format("head.weight_{}", k), h, o.outputs, y);
    if (k > 0) continue;
    Op& first = ops_.back();
    first.start = dense::Start::bias;
    first.bias = parameter("head.bias", {o.outputs});
  }
  last_ = y;
}

template <class T>
GraphNetwork<T>::GraphNetwork(NetworkOptions options) : options_(std::move(options)) {
  const NetworkOptions& o = options_;
  validate(o);
  std::size_t h = tensor(o.inputs);
  const bool headless = o.task == GraphTask::node && o.jumping == Jumping::none;
  std::vector<std::size_t> widths = o.hidden, layers;
  if (headless) widths.push_back(o.outputs);
  for (std::size_t l = 0; l < widths.size(); ++l) {
    const std::string name = fmt::format("layer.{}", l);
    std::size_t in = h;
    if (o.dropout > 0 && !(l == 0 && o.sparse)) {
      Op op;
      op.kind = OpKind::dropout;
      op.name = name + ".dropout";
      op.probability = o.dropout;
      op.in = in;
      op.out = tensor(tensors_[in].width);
      in = add(std::move(op)).out;
    }
    std::size_t z = add_messages(l, in, widths[l]);
    const bool output = headless && l + 1 == widths.size();
    const bool normed = o.norm != Norm::none && !output;
    if (normed) z = add_norm(name + ".norm", z);
    const bool around = o.residual && !output && tensors_[h].width == widths[l] && !(l == 0 && o.sparse);
    h = add_activation(name + ".bias", z, !normed, output ? Activation::none : o.activation, around ? h : kNone);
    layers.push_back(h);
  }
  last_ = h;
  if (!headless) add_head(layers);
  list_sums();
}

template <class T>
void GraphNetwork<T>::initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const {
  std::fill(parameters.begin(), parameters.end(), T(0));
  std::fill(buffers.begin(), buffers.end(), T(0));
  const auto draw = [&](std::size_t s, double limit) {
    const RandomStream random(seed, RandomUse::initialise, 0, static_cast<std::uint32_t>(s));
    std::uint32_t at = 0;
    for_each_logical(parameters_[s],
                     [&](std::size_t i) { parameters[i] = static_cast<T>(limit * (2 * random.uniform(at++) - 1)); });
  };
  const auto ones = [](const Slice& slice, std::span<T> flat) {
    for_each_logical(slice, [&](std::size_t i) { flat[i] = T(1); });
  };
  const auto glorot = [&](std::size_t s) {
    const auto& shape = parameters_[s].shape;
    draw(s, std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1])));
  };
  for (const Op& op : ops_) {
    if (op.kind == OpKind::dense || op.kind == OpKind::sparse) glorot(op.weight);
    if (op.edge_weight != kNone) glorot(op.edge_weight);
    if (op.kind == OpKind::attention)
      draw(op.weight, std::sqrt(6.0 / static_cast<double>(parameters_[op.weight].shape[0] / op.heads + 1)));
    if (op.kind == OpKind::norm) ones(parameters_[op.weight], parameters);
    if (op.variance != kNone) ones(buffers_[op.variance], buffers);
  }
}

// What each operation keeps: dropout a = keep; sparse a = keep, b = values; maximum, readout and jump a = winner;
// norm a = mean, b = inverse; attention a = alpha, b = alpha of the node itself, c, d = their gradients.
template <class T>
void GraphNetwork<T>::reserve_op(Tape& tape, std::size_t n) const {
  const Op& op = ops_[n];
  auto& m = tape.op_[n];
  Workspace& w = tape.workspace_;
  const Tensor& out = tensors_[op.out];
  const std::size_t rows = out.graphs ? tape.graphs_ : tape.nodes_;
  if (op.kind == OpKind::dropout) m.a = w.reserve<std::uint8_t>(rows * out.stride);
  if (op.kind == OpKind::sparse && op.probability > 0)
    m.a = w.reserve<std::uint8_t>(tape.entries_), m.b = w.reserve<T>(tape.entries_);
  if (op.kind == OpKind::maximum || op.kind == OpKind::readout || op.kind == OpKind::jump_max)
    m.a = w.reserve<std::uint32_t>(rows * out.stride);
  if (op.kind == OpKind::norm) {
    const std::size_t count = op.norm == Norm::layer ? rows : out.stride;
    m.a = w.reserve<T>(count), m.b = w.reserve<T>(count);
  }
  if (op.kind == OpKind::attention) {
    m.a = w.reserve<T>(tape.arcs_ * op.heads), m.b = w.reserve<T>(rows * op.heads);
    if (tape.limits_.backward) m.c = w.reserve<T>(tape.arcs_ * op.heads), m.d = w.reserve<T>(rows * op.heads);
  }
  if (!tape.limits_.backward) return;
  if (op.kind == OpKind::dense) m.transposed = w.reserve<T>(out.width * dense::padded(tensors_[op.in].width));
  std::size_t summed = op.kind == OpKind::norm && op.norm == Norm::layer ? 2 * out.stride
                       : op.kind == OpKind::attention                    ? out.stride * (1 + options_.edge_features)
                       : op.epsilon != kNone                             ? 1
                       : op.bias != kNone                                ? out.stride
                                                                         : 0;
  if (out.graphs || is_barrier(n)) summed = 0;
  m.sums = w.reserve<T>(summed * (options_.task == GraphTask::node ? most_blocks(tape.nodes_)
                                                                   : tape.graphs_ + tape.nodes_ / kGraphBlock));
}

template <class T>
GraphTape<T> GraphNetwork<T>::make_tape(const Exec& ex, const TapeLimits& limits) const {
  if (limits.batch == 0) fail("a tape for batches of 0 rows was asked for");
  Tape t;
  t.limits_ = limits;
  const GraphLimits& l = options_.limits;
  const bool node = options_.task == GraphTask::node;
  const std::size_t graphs = node ? l.nodes.size() : limits.batch;
  t.nodes_ = clamped(l.nodes, graphs), t.arcs_ = clamped(l.arcs, graphs), t.entries_ = l.entries;
  t.graphs_ = graphs;
  Workspace& w = t.workspace_;
  std::size_t widest = 0, largest = 0;
  for (const Tensor& tensor : tensors_) {
    const std::size_t rows = tensor.graphs ? t.graphs_ : t.nodes_;
    const bool input = t.value_.empty();
    // Dense inputs may come with other strides; sparse ones have no rows at all.
    t.value_.push_back(w.reserve<T>(input && options_.sparse ? 0 : rows * tensor.stride));
    t.gradient_.push_back(limits.backward && (!input || limits.input_gradient) ? w.reserve<T>(rows * tensor.stride)
                                                                               : 0);
    widest = std::max(widest, tensor.stride);
  }
  t.op_.resize(ops_.size());
  for (std::size_t n = 0; n < ops_.size(); ++n) {
    reserve_op(t, n);
    const Op& op = ops_[n];
    if (op.weight != kNone) largest = std::max(largest, parameters_[op.weight].stored_size());
    if (Profile* profile = ex.profile()) {
      t.op_[n].forward_phase = profile->phase("forward " + op.name);
      t.op_[n].backward_phase = profile->phase("backward " + op.name);
    }
  }
  if (limits.backward || options_.norm == Norm::batch) {
    t.blocks_ = w.reserve<T>(most_blocks(t.nodes_) * std::max(largest, 2 * widest));
    const std::size_t large = node || clamped(l.nodes, 1) <= kGraphBlock ? 0 : t.nodes_ / kGraphBlock;
    t.large_ = w.reserve<T>(limits.backward ? large * largest : 0);
  }
  if (limits.backward || options_.sparse)
    t.scratch_ = w.reserve<T>(std::max({std::size_t{2}, t.nodes_, t.graphs_}) * widest);
  if (limits.backward) {
    if (limits.input_gradient) {
      t.edge_weight_ = w.reserve<T>(t.arcs_);
      t.edge_x_ = w.reserve<T>(options_.edge_features > 0 ? t.arcs_ * dense::padded(options_.edge_features) : 0);
    }
  }
  const std::size_t most = std::max(t.arcs_, t.entries_);
  t.segments_ = w.reserve<T>(2 * (most / message::kSegment + 1) * widest);
  for (auto* list : {&t.in_, &t.out_, &t.feature_in_, &t.feature_out_}) {
    list->rows = w.reserve<std::uint32_t>(most / message::kSegment + 1);
    list->starts = w.reserve<std::uint32_t>(most / message::kSegment + 2);
  }
  t.widest_ = widest;
  t.needed_.resize(tensors_.size());
  t.graded_.resize((ops_.size() + 1) * tensors_.size());
  t.attention_.resize(ops_.size());
  t.wide_ = w.reserve<std::uint32_t>(2 * graphs + 2), t.packs_ = w.reserve<std::uint32_t>(2 * graphs + 2);
  t.first_block_ = w.reserve<std::uint32_t>(graphs + 1);
  w.allocate();
  return t;
}

template <class T>
void GraphNetwork<T>::update_buffers(const Tape& tape, std::span<T> buffers) const {
  if (!tape.trained_) return;
  const double n = static_cast<double>(tape.batch_nodes_);
  for (std::size_t k = 0; k < ops_.size(); ++k) {
    const Op& op = ops_[k];
    if (op.mean == kNone) continue;
    const T* mean = tape.workspace_.template at<T>(tape.op_[k].a);
    const T* inverse = tape.workspace_.template at<T>(tape.op_[k].b);
    for (std::size_t c = 0; c < tensors_[op.in].width; ++c) {
      const double deviation = 1.0 / static_cast<double>(inverse[c]);
      const double variance =
          std::max(0.0, deviation * deviation - kernels::rowwise::kNormEpsilon) * (n > 1 ? n / (n - 1) : 1.0);
      T& m = buffers[buffers_[op.mean].offset + c];
      T& v = buffers[buffers_[op.variance].offset + c];
      m = static_cast<T>(0.9 * static_cast<double>(m) + 0.1 * static_cast<double>(mean[c]));
      v = static_cast<T>(0.9 * static_cast<double>(v) + 0.1 * variance);
    }
  }
}

template void GraphLimits::include<float>(const GraphDataset<float>&);
template void GraphLimits::include<double>(const GraphDataset<double>&);
template class GraphNetwork<float>;
template class GraphNetwork<double>;

}  // namespace gradloom::graph
