// TreeNetwork: messages along the edges of trees, in both directions and by the side of a child; an answer for each
// node.
#pragma once

#include <vector>

#include "gradloom/data/rewrite_dataset.h"
#include "gradloom/models/graph/ops/dense_rows.h"
#include "gradloom/models/model.h"

namespace gradloom::graph {

// A node i starts from a row of its symbol and one of its side (root, left or right child; without it two equal
// children could not be told apart): h_i = E[symbol_i] + E[symbols + side_i]. Every layer adds to it what it makes of
// the node, its parent and its two children (a row of zeros where there is none):
//   h_i <- h_i + silu([h_i, h_parent, h_left, h_right] W + b)
// and the answer is y_i = h_i W_out + b_out. What a node can see lies at most `layers` edges away.
struct TreeOptions {
  std::size_t symbols = kSymbols, outputs = kNodeOutputs;
  std::size_t width = 64;       // of h; a multiple of 16
  std::size_t layers = 4;       // at least 1
  std::size_t most_nodes = 25;  // of one tree
};

// Throws Exception{invalid_input} that names the option when it cannot be built.
void validate(const TreeOptions& options);

template <class T>
class TreeNetwork;

// Memory linear in nodes, and for backward one gradient for each part of the batch, of which there are at most 32.
template <class T>
class TreeTape {
 public:
  std::size_t bytes() const { return workspace_.bytes(); }

 private:
  friend class TreeNetwork<T>;
  TapeLimits limits_;
  Workspace workspace_;
  unsigned workers_ = 1;
  std::size_t part_nodes_ = 0;           // the most of one part
  std::vector<std::size_t> h_, z_;       // (N, width) of each layer; without backward: of each worker
  std::vector<std::size_t> scratch_;     // of each worker
  std::vector<std::size_t> transposed_;  // of each layer, then of the head
  std::size_t partials_ = 0;             // (parts, parameters)
  std::size_t seen_trees_ = ~std::size_t{0}, seen_nodes_ = 0;
};

// A const description; owns no weights. y (B, most_nodes * outputs): the answers for the nodes of a tree in preorder,
// zeros behind the last. Parameters: symbol.weight (symbols + 3, width), layer.l.weight (4 width, width), layer.l.bias,
// head.weight (width, outputs), head.bias. A batch is cut into parts of whole trees, by its size alone; a part is
// computed by one worker from end to end; gradients add the nodes of a part in order, and the parts as
// dense::add_blocks does. The same bits for any number of threads. There is no dl_dx: symbols are no numbers.
template <class T>
class TreeNetwork {
 public:
  using Scalar = T;
  using Batch = TreeBatch<T>;
  using Tape = TreeTape<T>;

  explicit TreeNetwork(TreeOptions options);

  const TreeOptions& options() const { return options_; }
  const Slices& parameters() const { return parameters_; }
  const Slices& buffers() const { return buffers_; }
  std::size_t output_width() const { return options_.most_nodes * options_.outputs; }
  // Slices: symbol.weight, then weight and bias of each layer, then of the head.
  std::size_t weight_slice(std::size_t layer) const { return 1 + 2 * layer; }

  // Symbols and sides: normal with standard deviation 1; weights: uniform within sqrt(6 / (In + Out)); biases 0.
  void initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const;
  Tape make_tape(const Exec& ex, const TapeLimits& limits) const;
  void forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
               View<T, 2> y) const;
  void backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const;

 private:
  struct Part;
  const T* weights(const ModelArrays<T>& arrays, std::size_t slice) const {
    return arrays.parameters.data() + parameters_[slice].offset;
  }
  DenseRows<T> dense_rows(const Exec& ex, std::size_t layer) const;  // the last is the head
  void collect(const Batch& batch, const Part& part, const T* h, T* to) const;
  void forward_part(const Exec& ex, const ModelArrays<T>& arrays, const Batch& batch, const Part& part,
                    View<T, 2> y) const;
  void backward_part(const Exec& ex, const Batch& batch, const Part& part, View<const T, 2> dl_dy, T* gradient) const;
  Part part_of(const Batch& batch, Tape& tape, std::size_t part, unsigned worker) const;
  static std::size_t part_trees(std::size_t trees);

  TreeOptions options_;
  Slices parameters_{sizeof(T)}, buffers_{sizeof(T)};
  std::size_t out_stride_;
};

inline constexpr std::size_t kSides = 3;

// 0: the root, 1: a left child, 2: a right one.
template <class T>
std::size_t side_of(const TreeBatch<T>& batch, std::size_t v) {
  const std::uint32_t parent = batch.parent[v];
  return parent == kNoNode ? 0 : batch.left[parent] == v ? 1 : 2;
}

// d/d(parameter `index`) of sum dl_dy y by dual numbers: exact, slow, independent of the backward pass.
double dual_derivative(const TreeNetwork<double>& network, const ModelArrays<double>& arrays,
                       const TreeBatch<double>& batch, View<const double, 2> dl_dy, std::size_t index);

}  // namespace gradloom::graph
