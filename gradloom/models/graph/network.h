// GraphNetwork: layers of messages over graphs, for classes of nodes or of whole graphs.
#pragma once

#include <string>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/data/graph_dataset.h"
#include "gradloom/kernels/dense/dense.h"
#include "gradloom/kernels/message/attention.h"
#include "gradloom/kernels/message/message.h"
#include "gradloom/kernels/rowwise/rowwise.h"
#include "gradloom/models/model.h"

namespace gradloom::graph {

using kernels::rowwise::Activation;

// h_i is the row of node i, d its number of arcs in, w the weight of an arc (1 without weights), f its features.
// Features of edges add (sum_j w f_ij) W_e, scaled like the messages, except for gat, where they are part of the score.
enum class LayerKind {
  mean,       // W (h_i + sum_j w h_j) / (d + 1)
  gcn,        // W sum_j w h_j / sqrt((d_i + 1)(d_j + 1)), j over the neighbours and i itself
  sage_mean,  // W_self h_i + W (sum_j w h_j) / d
  sage_max,   // W_self h_i + W max_j h_j; neither edge weights nor features
  gin,        // W_2 act(norm(W_1 ((1 + epsilon) h_i + sum_j w h_j)))
  gat,        // GATv2: attention; no edge weights
};
inline constexpr Choice<LayerKind> kLayers[] = {
    {LayerKind::mean, "mean", "mean of the neighbourhood"}, {LayerKind::gcn, "gcn", "graph convolution"},
    {LayerKind::sage_mean, "sage-mean", "GraphSAGE, mean"}, {LayerKind::sage_max, "sage-max", "GraphSAGE, maximum"},
    {LayerKind::gin, "gin", "graph isomorphism network"},   {LayerKind::gat, "gat", "GATv2 attention"},
};

// Attention and maxima have no place for a weight on an edge.
constexpr bool takes_edge_weights(LayerKind kind) { return kind != LayerKind::gat && kind != LayerKind::sage_max; }
enum class Norm { none, layer, batch };
inline constexpr Choice<Norm> kNorms[] = {
    {Norm::none, "none", "none"},
    {Norm::layer, "layer", "over the features of a node"},
    {Norm::batch, "batch", "over the nodes of a batch"},
};
enum class Jumping {
  none,
  concat,  // the head sees every layer
  max,     // the head sees the largest of all layers, number by number; layers have one width
};
inline constexpr Choice<Jumping> kJumpings[] = {
    {Jumping::none, "none", "the last layer alone"},
    {Jumping::concat, "concat", "every layer"},
    {Jumping::max, "max", "the largest of all layers"},
};
enum class Readout { sum, mean, max };
inline constexpr Choice<Readout> kReadouts[] = {
    {Readout::sum, "sum", "sum over nodes"},
    {Readout::mean, "mean", "mean over nodes"},
    {Readout::max, "max", "maximum over nodes"},
};

// How large batches get: element b is for the largest b graphs; more than there are count as all.
struct GraphLimits {
  std::vector<std::size_t> nodes{0}, arcs{0};
  std::size_t entries = 0;  // of sparse features
  // Large enough for any batch of this data set too.
  template <class T>
  void include(const GraphDataset<T>& data);
};

struct NetworkOptions {
  GraphTask task = GraphTask::node;
  LayerKind kind = LayerKind::gcn;
  std::size_t inputs = 1, outputs = 1, edge_features = 0;
  bool sparse = false;              // the features of nodes
  std::vector<std::size_t> hidden;  // widths; a node network without jumping has one more layer, to the outputs
  std::size_t heads = 1;            // gat; hidden widths are multiples of it
  Activation activation = Activation::relu;
  Norm norm = Norm::none;
  Jumping jumping = Jumping::none;
  Readout readout = Readout::sum;
  double dropout = 0.0;       // before every layer
  double head_dropout = 0.0;  // before the head
  bool residual = false;      // around every layer whose widths agree
  GraphLimits limits;
};

// Throws Exception{invalid_input} that names the option when it cannot be built.
void validate(const NetworkOptions& options);

inline constexpr std::size_t kNone = ~std::size_t{0};

// The network as a list of operations on tensors; every layer is made of these.
enum class OpKind {
  dropout,
  dense,        // out (=, or += by `start`) in W + bias
  sparse,       // the same with the sparse features of the batch, which dropout may thin out first
  gather,       // message.h
  edge_gather,  // the features of the arcs into a node, summed
  maximum,
  attention,
  norm,
  activate,  // act(in + bias) + residual
  jump_max,
  readout,
};
enum class NodeScale { one, root, with_self, without };

struct Op {
  OpKind kind = OpKind::dense;
  std::size_t in = kNone, other = kNone, out = kNone;  // tensors; other: residual, or `right` of attention
  std::vector<std::size_t> ins;                        // jump_max
  std::size_t weight = kNone, bias = kNone, edge_weight = kNone, epsilon = kNone;  // parameter slices
  std::size_t mean = kNone, variance = kNone;                                      // buffer slices
  kernels::dense::Start start = kernels::dense::Start::zero;
  NodeScale row = NodeScale::one, source = NodeScale::one;
  double self = 0.0, probability = 0.0;
  std::size_t heads = 1;
  Activation activation = Activation::none;
  Norm norm = Norm::none;
  Readout readout = Readout::sum;
  std::string name;  // for profiles
};

struct Tensor {
  bool graphs = false;  // rows are graphs, not nodes
  std::size_t width = 0, stride = 0;
};
struct Part;

template <class T>
class GraphNetwork;

// Memory of a forward and backward pass, linear in nodes times widths and in arcs times heads.
template <class T>
class GraphTape {
 public:
  std::size_t bytes() const { return workspace_.bytes(); }
  // dl/d(edge weight) (E) and dl/d(edge feature) (E, Fe, rows of `stride`) of the last backward pass that was asked for
  // dl_dx with a tape made for that; empty when the batch has none.
  std::span<const T> edge_weight_gradient() const { return edge_weight_gradient_; }
  View<const T, 2> edge_feature_gradient() const { return edge_feature_gradient_; }

 private:
  friend class GraphNetwork<T>;
  struct HubList {
    std::size_t rows = 0, starts = 0;  // in the workspace: hubs, and the first segment of each
    std::size_t count = 0, segments = 0;
  };
  struct OpMemory {
    std::size_t a = 0, b = 0, c = 0, d = 0;  // what the operation keeps; see reserve_op()
    std::size_t sums = 0, transposed = 0;    // sums of its small parameters, one per block of rows; its weights
    std::size_t forward_phase = 0, backward_phase = 0;
  };
  TapeLimits limits_;
  std::size_t nodes_ = 0, graphs_ = 0, arcs_ = 0, entries_ = 0;
  std::size_t batch_nodes_ = 0, batch_rows_ = kNone;
  bool trained_ = false;  // the last forward pass was in training mode
  Workspace workspace_;
  std::vector<std::size_t> value_, gradient_;
  std::vector<OpMemory> op_;
  std::vector<std::uint8_t> needed_;
  std::vector<std::uint8_t> graded_;  // (operations, tensors): has a gradient when the operation's turn comes
  // Pairs of first and last graph: parts that all workers compute together, then parts for one worker each. And the
  // number of the first block of rows of each graph.
  std::size_t wide_ = 0, packs_ = 0, first_block_ = 0;
  std::size_t wide_count_ = 0, pack_count_ = 0, large_count_ = 0;
  std::size_t widest_ = 0;  // the largest stride: rows of shared memory are so far apart, whatever they hold
  std::size_t blocks_ = 0, large_ = 0, segments_ = 0, scratch_ = 0, edge_weight_ = 0, edge_x_ = 0;
  HubList in_, out_, feature_in_, feature_out_;
  const T* x_ = nullptr;
  GraphBatch<T> seen_;  // of the last forward pass, for branches()
  std::vector<kernels::message::Attention<T>> attention_;
  std::span<const T> edge_weight_gradient_;
  View<const T, 2> edge_feature_gradient_;
};

// A const description; owns no weights. Parameters: layer.l.weight (In, Out) and so on, head.weight, head.bias.
// Buffers: statistics of batch norm, which update_buffers() moves after a training step. Order of sums: as the kernels
// say; over the rows of a node task in dense::row_blocks; in graph tasks over the rows of each graph (in blocks when it
// is large), then graph after graph onto what the gradient holds. So results do not depend on threads, and without
// batch norm a gradient does not depend on how its graphs are dealt to batches that accumulate. Many small graphs run
// side by side, each by one worker; large ones are cut within every operation.
template <class T>
class GraphNetwork {
 public:
  using Scalar = T;
  using Batch = GraphBatch<T>;
  using Tape = GraphTape<T>;

  explicit GraphNetwork(NetworkOptions options);

  const NetworkOptions& options() const { return options_; }
  const Slices& parameters() const { return parameters_; }
  const Slices& buffers() const { return buffers_; }
  std::size_t output_width() const { return options_.outputs; }
  const std::vector<Op>& ops() const { return ops_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  std::size_t last() const { return last_; }  // the tensor that is y

  // Weights: uniform within sqrt(6 / (In + Out)); biases and epsilon 0; gains 1.
  void initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const;
  Tape make_tape(const Exec& ex, const TapeLimits& limits) const;
  void forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
               View<T, 2> y) const;
  // dl_dx (N, In) whatever the task; not for sparse features.
  void backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const;
  // After a training step: running = 0.9 running + 0.1 of the batch, for the statistics of batch norm.
  void update_buffers(const Tape& tape, std::span<T> buffers) const;
  std::uint64_t branches(const Tape& tape) const;

  // Which numbers an operation with dropout keeps in this step: of graph `sample` of the data set, or, in node tasks,
  // of batch `sample` of the epoch.
  static kernels::rowwise::Dropout dropout(const Step& step, double probability, std::size_t op, std::uint32_t sample);

 private:
  struct Pass;
  struct Call {
    const Step& step;
    const ModelArrays<T>& arrays;
    const Batch& batch;
    Tape& tape;
  };
  struct SumTask {
    std::size_t op, begin, end;  // rows of a weight; none: all small parameters of the operation
  };
  std::size_t tensor(std::size_t width, bool graphs = false);
  std::size_t parameter(std::string name, std::vector<std::size_t> shape);
  Op& add(Op op);
  std::size_t add_dense(const std::string& name, std::size_t in, std::size_t width, std::size_t out = kNone);
  std::size_t add_messages(std::size_t l, std::size_t in, std::size_t width);
  std::size_t add_norm(const std::string& name, std::size_t in);
  std::size_t add_activation(const std::string& name, std::size_t in, bool bias, Activation act, std::size_t residual);
  void add_head(const std::vector<std::size_t>& layers);
  void reserve_op(Tape& tape, std::size_t op) const;
  void list_sums();
  void plan(const Batch& batch, Tape& tape) const;
  Part part_of(const Batch& batch, const Tape& tape, std::size_t list, std::size_t k) const;
  bool is_barrier(std::size_t op) const { return ops_[op].kind == OpKind::norm && ops_[op].norm == Norm::batch; }
  // Calls run(ex, part, operation, worker) for every operation on all parts.
  enum class Order { forwards, backwards };
  template <class F>
  void run_ops(const Exec& ex, const Batch& batch, const Tape& tape, Order order, F&& run) const;
  void find_hubs(std::span<const std::uint32_t> ptr, Tape& tape, typename Tape::HubList& list) const;
  void run_gather(
      const Exec& ex, Tape& tape, const kernels::message::Gather<T>& g, std::size_t first, std::size_t last,
      const typename Tape::HubList& hubs,
      FunctionRef<void(std::size_t begin, std::size_t end)> then = [](std::size_t, std::size_t) {}) const;
  // The next operation does nothing but activate what this one gives, row by row.
  bool is_activated(std::size_t op) const;
  void activate_rows(const Call& call, std::size_t op, std::size_t begin, std::size_t end) const;
  void run_dropout(const Exec& ex, const Call& call, const Part& part, std::size_t op) const;
  kernels::message::Gather<T> gather_of(const Op& op, const Batch& batch, const ModelArrays<T>& arrays) const;
  kernels::message::Attention<T> attention_of(const Op& op, std::size_t n, const Batch& batch,
                                              const ModelArrays<T>& arrays, Tape& tape) const;
  const T* value(const Tape& tape, std::size_t t) const;
  T* gradient_of(Tape& tape, std::size_t t) const;
  std::size_t rows_of(const Batch& batch, std::size_t t) const;
  const T* weights(const ModelArrays<T>& arrays, std::size_t slice) const;
  void forward_op(const Exec& ex, const Call& call, const Part& part, std::size_t n) const;
  void find_needed(const Step& step, bool inputs, Tape& tape) const;
  void begin_backward(const Exec& ex, const Call& call, View<const T, 2> dl_dy) const;
  void backward_op(const Pass& pass, std::size_t n) const;

  NetworkOptions options_;
  Slices parameters_{sizeof(T)}, buffers_{sizeof(T)};
  std::vector<Tensor> tensors_;
  std::vector<Op> ops_;
  std::vector<SumTask> sums_;
  std::size_t last_ = 0;
  std::size_t node_work_ = 0, arc_work_ = 0;  // multiplications of a forward pass for one more node, one more arc
};

}  // namespace gradloom::graph
