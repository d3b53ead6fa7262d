// GraphNetwork: layers of messages over graphs, for classes of nodes or of whole graphs.
#pragma once

#include "gradloom/base/choice.h"
#include "gradloom/data/graph_dataset.h"
#include "gradloom/models/graph/ops/op.h"

namespace gradloom::graph {

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
    {Jumping::none, "none", "only the last layer"},
    {Jumping::concat, "concat", "every layer"},
    {Jumping::max, "max", "the maximum over all layers"},
};
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
  BatchSizes batch_of(std::size_t graphs, std::size_t pairs) const;
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

// A const description; owns no weights. A network is a list of operations on tensors (ops/); every layer is made
// of these. Parameters: layer.l.weight (In, Out) and so on, head.weight, head.bias. Buffers: statistics of batch norm,
// which update_buffers() moves after a training step. Order of sums: as the kernels say; over the rows of a node task
// in dense::row_blocks; in graph tasks over the rows of each graph (in blocks when it is large), which are leaves of
// kernels/reduce/tree_sum.h; a parameter that has one sum for a batch has it in the first of these. So results do not
// depend on threads, and without batch norm a gradient does not depend on how its graphs are dealt to batches that
// accumulate. Many small graphs run side by side, each by one worker; large ones are cut within every operation.
template <class T>
class GraphNetwork {
 public:
  using Scalar = T;
  using Batch = GraphBatch<T>;
  using Tape = GraphTape<T>;
  using Ops = std::vector<std::shared_ptr<Op<T>>>;  // copies of a network share them

  explicit GraphNetwork(NetworkOptions options) : GraphNetwork(std::move(options), "") {}

  const NetworkOptions& options() const { return options_; }
  const Slices& parameters() const { return parameters_; }
  const Slices& buffers() const { return buffers_; }
  std::size_t output_width() const { return last_.width; }
  const Ops& ops() const { return ops_; }
  std::size_t tensors() const { return tensors_.size(); }
  const Tensor& last() const { return last_; }  // y
  // What the output is a function of: the rows before the head (of graphs in graph tasks), layer after layer with
  // jumping by concatenation; without a head, the rows of the last hidden layer. Empty when there is none.
  const std::vector<Tensor>& embedding() const { return embedding_; }
  // The rows of a tensor after a forward pass; the tape keeps them until the next.
  View<const T, 2> value(const Tape& tape, const Tensor& tensor) const;

  // Weights: uniform within sqrt(6 / (In + Out)); biases and epsilon 0; gains 1.
  void initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const;
  Tape make_tape(const Exec& ex, const TapeLimits& limits) const;
  void forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
               View<T, 2> y) const {
    run(ex, step, arrays, batch, tape, y);
  }
  // dl_dx (N, In) whatever the task; not for sparse features.
  void backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const;
  // A graph is one in graph tasks; in other tasks the batch.
  std::size_t leaves(const Batch& batch) const {
    return sum_by_ == SumBy::graphs ? std::max<std::size_t>(1, batch.graphs) : 1;
  }
  std::size_t leaf_samples() const { return sum_by_ == SumBy::graphs ? 1 : 0; }
  // After a training step: running = 0.9 running + 0.1 of the batch, for the statistics of batch norm.
  void update_buffers(const Tape& tape, std::span<T> buffers) const;
  std::uint64_t branches(const Tape& tape) const;

 protected:
  // To be extended by operations behind its own. Names of its own parameters begin with `prefix`.
  GraphNetwork(NetworkOptions options, const std::string& prefix);
  // No operations, and graphs without features and arcs.
  explicit GraphNetwork(SumBy sum_by) : sum_by_(sum_by) { options_.inputs = 0, add_tensor(0, RowsAre::nodes); }
  Tensor add_tensor(std::size_t width, RowsAre rows, bool recomputed = false);
  // What a slice is initialised with: uniform within +-limit, or a constant, or normal with standard deviation 1.
  // glorot: sqrt(6 / (In + Out)) of its shape.
  struct Initial {
    double limit = 0.0, constant = 0.0;
    bool glorot = false, normal = false;
    bool scalar = false;  // the slice is one number without padding
  };
  SliceRef add_parameter(const std::string& name, std::vector<std::size_t> shape, Initial initial = {});
  // Appends an operation; its output is the output of the network until another one is added. Returns that tensor.
  template <template <class> class O>
  Tensor add(const std::string& name, typename O<T>::Fields fields) {
    return place(std::make_shared<O<T>>(name, std::move(fields)));
  }
  // `onto`: the product is added to that tensor. No bias without a name.
  Tensor add_dense(const std::string& name, const Tensor& in, std::size_t width, const Tensor& onto = {},
                   const std::string& bias = "");
  Tensor add_activation(const std::string& name, const Tensor& in, bool bias, Activation act, const Tensor& residual);

  // largest_graph: nodes of one graph.
  Tape make_tape_for(const Exec& ex, const TapeLimits& limits, const BatchSizes& most, std::size_t largest_graph) const;
  // Parts of so many graphs from the next pass on; 0: as the batch says.
  static void cut_parts(Tape& tape, std::size_t graphs) { tape.part_graphs_ = graphs; }
  // Both passes, for any kind of batch that the operations take.
  template <class B>
  void run(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const B& batch, Tape& tape,
           View<T, 2> y) const {
    const Call call{ex, step, arrays, batch, tape};
    check(call);
    tape.seen_ = batch;
    run_forward(call, y);
  }
  // Operations from `first` on, each over the whole batch, on `in` instead of what the one before them gives.
  template <class B>
  void run_tail(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const B& batch, Tape& tape,
                std::size_t first, View<const T, 2> in, View<T, 2> y) const {
    const Call call{ex, step, arrays, batch, tape};
    check(call);
    tape.seen_ = batch;
    run_tail_forward(call, first, in, y);
  }
  // Behind it. The sums are one leaf; dl_din is overwritten unless nothing before `first` learns.
  template <class B>
  void run_tail_backward(const Exec& ex, const BackwardCall<T, B, Tape>& c, std::size_t first,
                         View<T, 2> dl_din) const {
    tail_backward(ex, {c.step, c.arrays, c.batch, c.tape, c.dl_dy, c.gradient, c.dl_dx, c.sink, c.levels}, first,
                  dl_din);
  }
  template <class B>
  void run_backward(const Exec& ex, const BackwardCall<T, B, Tape>& c) const {
    GraphNetwork::backward(ex, {c.step, c.arrays, c.batch, c.tape, c.dl_dy, c.gradient, c.dl_dx, c.sink, c.levels});
  }

 private:
  struct Call {
    const Exec& ex;
    const Step& step;
    const ModelArrays<T>& arrays;
    const GraphBatch<T>& batch;
    Tape& tape;
  };
  enum class Order { forwards, backwards };
  Tensor place(std::shared_ptr<Op<T>> op);
  Tensor add_messages(std::size_t l, const Tensor& in, std::size_t width);
  Tensor add_norm(const std::string& name, const Tensor& in);
  Tensor add_dropout(const std::string& name, const Tensor& in, double probability);
  void add_head(const std::vector<Tensor>& layers);
  Seen<T> seen_by(const Tape& tape, const Op<T>& op) const;
  void check(const Call& call) const;
  void run_forward(const Call& call, View<T, 2> y) const;
  void run_tail_forward(const Call& call, std::size_t first, View<const T, 2> in, View<T, 2> y) const;
  void tail_backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, std::size_t first,
                     View<T, 2> dl_din) const;
  void give_output(const Call& call, View<T, 2> y) const;
  void plan(const Batch& batch, Tape& tape) const;
  Part whole_part(const Batch& batch) const { return {0, batch.nodes, 0, batch.graphs, batch.size}; }
  Part part_of(const Batch& batch, const Tape& tape, std::size_t list, std::size_t k) const;
  Pass<T> pass_of(const Call& call, const Exec& ex, const Part& part, const Op<T>& op) const;
  // Calls run(ex, part, operation) for every operation on all parts.
  using RunOp = FunctionRef<void(const Exec& ex, const Part& part, const Op<T>& op)>;
  void run_ops(const Exec& ex, const Batch& batch, const Tape& tape, Order order, RunOp run) const;
  void find_hubs(std::span<const std::uint32_t> ptr, Tape& tape, Hubs which) const;
  void find_needed(const Step& step, bool inputs, Tape& tape) const;
  void begin_backward(const Call& call, View<const T, 2> dl_dy) const;
  void begin_edges(const Batch& batch, Tape& tape) const;
  void sum_parameters(const Pass<T>& all) const;

  NetworkOptions options_;
  SumBy sum_by_;
  std::string prefix_;  // of names, while the network is made
  Slices parameters_{sizeof(T)}, buffers_{sizeof(T)};
  std::vector<Initial> initial_;  // of each parameter
  std::vector<Tensor> tensors_;
  Ops ops_;
  std::vector<SumTask<T>> sums_;
  Tensor last_;
  std::vector<Tensor> embedding_;
  std::size_t node_work_ = 0, arc_work_ = 0;  // multiplications of a forward pass for one more node, one more arc
};

}  // namespace gradloom::graph
