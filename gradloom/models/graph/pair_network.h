// PairNetwork: how similar two graphs are, learned from pairs: one encoder for both graphs, and a head on the pair.
#pragma once

#include "gradloom/data/graph_pairs.h"
#include "gradloom/models/graph/network.h"

namespace gradloom::graph {

// With u, v the encodings of the two graphs (the outputs of the encoder, E numbers each) and n their numbers of nodes:
//   f = [ |u - v| , u + v ]                      (2 E)
//   z = w_2 act(f W_1 + b_1) + b_2
//   y = exp(-softplus(z) 2 / (n_u + n_v))        in (0, 1]
// softplus(z) is the distance that the network believes in, y the similarity that follows. y is the same bits for (u,
// v) and (v, u).
struct PairOptions {
  NetworkOptions encoder;   // a graph task; `outputs` is E
  std::size_t hidden = 64;  // of the head
};

// Throws Exception{invalid_input} that names the option when it cannot be built.
void validate(const PairOptions& options);

// The encoder with operations on pairs behind it. Parameters: those of the encoder, named encoder.*, then pair.weight_1
// (2 E, H), pair.bias_1, pair.weight_2 (H, 1), pair.bias_2. Order of sums: as the kernels say; a graph's gradient adds
// its pairs in ascending order; sums over pairs in dense::row_blocks. The same bits for any number of threads.
template <class T>
class PairNetwork : private GraphNetwork<T> {
  using Base = GraphNetwork<T>;

 public:
  using Scalar = T;
  using Batch = PairBatch<T>;
  using Tape = GraphTape<T>;
  using Encoder = GraphNetwork<T>;

  explicit PairNetwork(PairOptions options);

  const PairOptions& options() const { return options_; }
  // As models/shards.h says (HasEncoder); codes are (G, E).
  const Encoder& encoder() const { return encoder_; }
  void head_forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
                    View<const T, 2> codes, View<T, 2> y) const {
    this->run_tail(ex, step, arrays, batch, tape, encoder_.ops().size(), codes, y);
  }
  void head_backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, View<T, 2> dl_dcodes) const {
    this->run_tail_backward(ex, call, encoder_.ops().size(), dl_dcodes);
  }
  using Base::branches;
  using Base::buffers;
  using Base::initialise;
  using Base::last;
  using Base::leaves;
  std::size_t leaf_samples() const { return 0; }  // the pairs of a piece are one leaf
  using Base::ops;
  using Base::output_width;
  using Base::parameters;
  using Base::tensors;
  using Base::update_buffers;

  Tape make_tape(const Exec& ex, const TapeLimits& limits) const;
  void forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
               View<T, 2> y) const {
    this->run(ex, step, arrays, batch, tape, y);
  }
  // dl_dx (nodes, features) of the nodes of all graphs of the batch.
  void backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const { this->run_backward(ex, call); }

 private:
  PairOptions options_;
  Encoder encoder_;  // the same operations under the same numbers, for graphs alone
};

// d/d(parameter `index`) of sum_b dl_dy(b, 0) y_b by dual numbers: exact, slow, independent of the backward pass.
double dual_derivative(const PairNetwork<double>& network, const Step& step, const ModelArrays<double>& arrays,
                       const PairBatch<double>& batch, View<const double, 2> dl_dy, std::size_t index);

}  // namespace gradloom::graph
