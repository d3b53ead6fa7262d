// TreeNetwork: messages along the edges of trees, in both directions and by the side of a child; an answer for each
// node.
#pragma once

#include "gradloom/data/rewrite_dataset.h"
#include "gradloom/models/graph/network.h"
#include "gradloom/models/shards.h"

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

// A const description; owns no weights. y (B, most_nodes * outputs): the answers for the nodes of a tree in preorder,
// zeros behind the last. Parameters: symbol.weight (symbols + 3, width), layer.l.weight (4 width, width), layer.l.bias,
// head.weight (width, outputs), head.bias. A batch is cut into parts of whole trees, by its size alone; a part is
// computed by one worker from end to end; gradients add the nodes of a part in order, and the parts as
// dense::add_blocks does (SumBy::parts). The same bits for any number of threads. There is no dl_dx: symbols are no
// numbers.
template <class T>
class TreeNetwork : private GraphNetwork<T> {
  using Base = GraphNetwork<T>;

 public:
  using Scalar = T;
  using Batch = TreeBatch<T>;
  using Tape = GraphTape<T>;

  explicit TreeNetwork(TreeOptions options);

  const TreeOptions& options() const { return options_; }
  // Symbols and sides: normal with standard deviation 1; weights: uniform within sqrt(6 / (In + Out)); biases 0.
  using Base::buffers, Base::last, Base::leaf_samples, Base::leaves, Base::ops, Base::output_width, Base::parameters,
      Base::tensors;
  using Base::initialise;

  // For ranks that share a batch (HasParts).
  ShardLayout parts(std::size_t trees) const {
    return {.count = divide_up(trees, part_graphs(trees)), .samples = part_graphs(trees)};
  }
  void place(Tape& tape, std::size_t of) const { Base::cut_parts(tape, of == 0 ? 0 : part_graphs(of)); }

  Tape make_tape(const Exec& ex, const TapeLimits& limits) const;
  void forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
               View<T, 2> y) const;
  void backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const { this->run_backward(ex, call); }

 private:
  TreeOptions options_;
};

// d/d(parameter `index`) of sum dl_dy y by dual numbers: exact, slow, independent of the backward pass.
double dual_derivative(const TreeNetwork<double>& network, const ModelArrays<double>& arrays,
                       const TreeBatch<double>& batch, View<const double, 2> dl_dy, std::size_t index);

}  // namespace gradloom::graph
