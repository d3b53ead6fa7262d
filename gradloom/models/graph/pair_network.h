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

template <class T>
class PairNetwork;

template <class T>
class PairTape {
 public:
  std::size_t bytes() const { return encoder_.bytes() + workspace_.bytes(); }

 private:
  friend class PairNetwork<T>;
  GraphTape<T> encoder_;
  Workspace workspace_;
  TapeLimits limits_;
  std::size_t graphs_ = 0;                                           // the most of a batch
  std::size_t code_ = 0, dcode_ = 0;                                 // (G, E)
  std::size_t features_ = 0, dfeatures_ = 0;                         // (B, 2 E)
  std::size_t sum_ = 0, hidden_ = 0, dhidden_ = 0, z_ = 0, dz_ = 0;  // (B, H), (B, 1)
  std::size_t blocks_ = 0, transposed_ = 0;
  PairBatch<T> seen_;  // of the last forward pass
};

// A const description; owns no weights. Parameters: those of the encoder, named encoder.*, then pair.weight_1 (2 E, H),
// pair.bias_1, pair.weight_2 (H, 1), pair.bias_2. Order of sums: as the kernels say; a graph's gradient adds its pairs
// in ascending order; sums over pairs in dense::row_blocks. The same bits for any number of threads.
template <class T>
class PairNetwork {
 public:
  using Scalar = T;
  using Batch = PairBatch<T>;
  using Tape = PairTape<T>;

  explicit PairNetwork(PairOptions options);

  const PairOptions& options() const { return options_; }
  const GraphNetwork<T>& encoder() const { return encoder_; }
  const Slices& parameters() const { return parameters_; }
  const Slices& buffers() const { return encoder_.buffers(); }
  std::size_t output_width() const { return 1; }
  std::size_t code_width() const { return encoder_.output_width(); }
  std::size_t head_slice(std::size_t k) const { return head_ + k; }  // weight_1, bias_1, weight_2, bias_2

  // The encoder as GraphNetwork does, the head likewise.
  void initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const;
  Tape make_tape(const Exec& ex, const TapeLimits& limits) const;
  void forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
               View<T, 2> y) const;
  // dl_dx (nodes, features) of the nodes of all graphs of the batch.
  void backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const;
  std::uint64_t branches(const Tape& tape) const;
  void update_buffers(const Tape& tape, std::span<T> buffers) const { encoder_.update_buffers(tape.encoder_, buffers); }

 private:
  struct Pass;
  const T* weights(const ModelArrays<T>& arrays, std::size_t k) const {
    return arrays.parameters.data() + parameters_[head_ + k].offset;
  }
  void head_backward(const Pass& pass, View<const T, 2> dl_dy) const;

  PairOptions options_;
  GraphNetwork<T> encoder_;
  Slices parameters_{sizeof(T)};
  std::size_t head_ = 0;                                      // the first slice of the head
  std::size_t code_stride_, feature_stride_, hidden_stride_;  // of rows
};

// d/d(parameter `index`) of sum_b dl_dy(b, 0) y_b by dual numbers: exact, slow, independent of the backward pass.
double dual_derivative(const PairNetwork<double>& network, const Step& step, const ModelArrays<double>& arrays,
                       const PairBatch<double>& batch, View<const double, 2> dl_dy, std::size_t index);

}  // namespace gradloom::graph
