// A spline network (Kolmogorov-Arnold network): layers of learnable splines on every edge (docs/math).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gradloom/base/layer_nodes.h"
#include "gradloom/base/result.h"
#include "gradloom/data/batch.h"
#include "gradloom/kernels/spline/spline.h"
#include "gradloom/models/kan/sparsity.h"
#include "gradloom/models/model.h"

namespace gradloom::kan {

using kernels::spline::Knots;
using kernels::spline::OutOfGrid;

struct NetworkOptions : SparsityOptions {
  std::vector<std::size_t> widths;  // inputs, hidden layers, outputs: at least two
  // Of each hidden layer, how many of its nodes are products of two sums; the others are sums. Empty: none at all.
  std::vector<std::size_t> multiply;
  unsigned grid = 5;    // intervals, 1..1024
  unsigned degree = 3;  // 1..7
  bool base = true;
  bool bias = true;
  bool keep_zero = false;  // edges whose weights are all 0 stay so: their gradient is 0 (on the CPU)
  OutOfGrid outside = OutOfGrid::linear;
  Knots knots = Knots::uniform;
  double lo = -1.0, hi = 1.0;  // where every grid starts out
  double spline_noise = 0.1;   // initial coefficients: normal with this standard deviation / sqrt(In)
  double base_scale = 1.0;     // initial base weights: normal with this standard deviation / sqrt(In)
};

// Throws Exception{invalid_input} that names the option when it cannot be built.
void validate(const NetworkOptions& options);

// Memory of a forward and backward pass. Movable; made once for the largest batch. A small tape is double-buffered
// (forward.cpp): each forward pass begins in the other copy.
template <class T>
class Tape {
 public:
  std::size_t bytes() const { return workspace_.bytes(); }
  // Values that fell outside the grid of a layer in the last forward pass.
  std::size_t outside(std::size_t layer) const;
  // Of the parameters that penalty() or a complete backward pass saw last.
  double penalty() const { return penalty_; }

 private:
  template <class U>
  friend class Network;

  struct Offsets {
    std::size_t x, span, value, slope, base_value, base_slope, gradient;
    std::size_t sums, node_gradient;                                          // with multiplication nodes
    std::size_t mean, strength, logarithm, node, weighted, log_node, common;  // with a penalty
  };
  struct Phases {
    std::size_t forward, input, weights;
  };
  TapeLimits limits_;
  std::size_t batch_ = 0;   // of the last forward pass; 0: none yet
  std::size_t stride_ = 0;  // samples from one panel or input to the next (kernels/spline/spline.h)
  Workspace workspace_;
  std::vector<Offsets> layers_;
  std::size_t y_ = 0, dl_dx_ = 0;
  std::vector<std::size_t> outside_;  // (layers, tiles)
  std::size_t tiles_ = 0;
  std::vector<Phases> phases_;
  std::vector<LayerPenalty> penalties_;  // (layers)
  double penalty_ = 0.0;
};

// Memory for single-sample inference: two rows. Made once per thread.
template <class T>
class SingleWorkspace {
 public:
  explicit SingleWorkspace(std::size_t widest) : memory_(2 * widest) {}

 private:
  template <class U>
  friend class Network;
  Buffer<T> memory_;
};

// A const description; owns no weights. Parameters: layerN.weight (In, rows, Out), layerN.bias (Out), where Out are the
// sums of a layer: its nodes, and one more for each that multiplies (base/layer_nodes.h). Buffers:
// input.mean, input.std (In), output.mean, output.std (Out), layerN.lo, layerN.hi (In), with free knots layerN.knots
// (In, G + 1), and derived tables. x is normalised as (x - mean) / std before the first layer, y is output.mean +
// output.std * (last layer).
template <class T>
class Network {
 public:
  using Scalar = T;
  using Batch = RowBatch<T>;
  using Tape = kan::Tape<T>;

  explicit Network(NetworkOptions options);

  const NetworkOptions& options() const { return options_; }
  std::size_t layers() const { return shapes_.size(); }
  const kernels::spline::Shape& shape(std::size_t layer) const { return shapes_[layer]; }
  // What the outputs of the layer's splines, its sums, become: inputs of the next layer.
  LayerNodes nodes(std::size_t layer) const { return layer_nodes(options_.widths, options_.multiply, layer); }
  const Slices& parameters() const { return parameters_; }
  const Slices& buffers() const { return buffers_; }
  std::size_t input_width() const { return options_.widths.front(); }
  std::size_t output_width() const { return options_.widths.back(); }

  // Random coefficients, grids over [lo, hi], no normalisation.
  void initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const;

  // Fills the derived buffers from the saved ones. Fails, naming layer and input, on a grid that is not finite and
  // increasing or a standard deviation that is not positive. To be called after any change of the saved buffers.
  Result<void> derive(std::span<T> buffers) const;

  Tape make_tape(const Exec& ex, const TapeLimits& limits) const;

  // Throws when the batch is wider or longer than the tape allows, or (backward) when no forward pass came before.
  void forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
               View<T, 2> y) const;
  void backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const;
  std::size_t leaves(const Batch& batch) const { return kernels::spline::leaves(batch.size); }
  std::size_t leaf_samples() const { return kernels::spline::kChunk; }
  // Of the slices of parameters(): the top layer first (model.h, HasFinishingOrder).
  std::vector<std::size_t> finishing_order() const;
  // Whether the gradient is a sum over samples and nothing else: no penalty, no edges that stay zero.
  bool sums_are_gradient() const { return options_.sparsity == 0 && !options_.keep_zero; }
  // The penalty of sparsity.h over all layers (penalty.h). The tape was made for backward passes.
  double penalty(const Exec& ex, std::span<const T> parameters, Tape& tape) const;
  double complete_gradient(const Exec& ex, const Step& step, std::span<const T> parameters, Tape& tape,
                           std::span<T> gradient) const;

  SingleWorkspace<T> make_single_workspace() const;
  // One sample: x (In), y (Out), contiguous. No allocation, no lock, no thread; the same bits as forward.
  void forward_single(Variant variant, const ModelArrays<T>& arrays, std::span<const T> x,
                      SingleWorkspace<T>& workspace, std::span<T> y) const;

  // The value that arrived at input i of a layer for sample s in the last forward pass.
  T layer_input(const Tape& tape, std::size_t layer, std::size_t s, std::size_t i) const;

  // Which interval every input of every layer fell into, as a hash (model.h, HasBranches).
  std::uint64_t branches(const Tape& tape) const;

  kernels::spline::Layer<T> layer(std::size_t layer, const ModelArrays<T>& arrays) const;

  std::size_t weight_slice(std::size_t layer) const { return slices_[layer].weight; }
  struct LayerSlices {  // indices into parameters() and buffers()
    std::size_t weight, bias, lo, hi, inverse_step, knots, extended, inverse;
  };
  const LayerSlices& slices(std::size_t layer) const { return slices_[layer]; }
  struct AffineSlices {
    std::size_t input_mean, input_std, input_scale, output_mean, output_std;
  };
  const AffineSlices& affine() const { return affine_; }

 private:
  // The two halves of backward(), from the top to layer `lowest`.
  void input_gradients(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, std::size_t lowest) const;
  void parameter_gradients(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, std::size_t lowest) const;
  void complete_inputs(const Exec& ex, std::size_t layer, kernels::spline::Range inputs, std::span<const T> parameters,
                       Tape& tape, std::span<T> gradient) const;
  kernels::spline::LayerTape<T> layer_tape(std::size_t layer, Tape& tape) const;
  LayerStrengths<T> layer_strengths(std::size_t layer, Tape& tape) const;
  // Reserves the pieces of a tape, with `stride` samples from one input to the next. The memory itself is not made.
  void lay_out(Tape& tape, std::size_t stride) const;

  NetworkOptions options_;
  std::vector<kernels::spline::Shape> shapes_;
  Slices parameters_{sizeof(T)}, buffers_{sizeof(T)};
  std::vector<LayerSlices> slices_;
  AffineSlices affine_{};
};

}  // namespace gradloom::kan
