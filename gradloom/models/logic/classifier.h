// A classifier of soft gates: layers of gates on binary features, and a count of the votes in each class.
#pragma once

#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/data/batch.h"
#include "gradloom/kernels/gate/gate.h"
#include "gradloom/models/logic/planned_wires.h"
#include "gradloom/models/logic/wires.h"
#include "gradloom/models/model.h"

namespace gradloom::logic {

struct ClassifierOptions {
  std::size_t inputs = 1;           // features in [0, 1]
  std::vector<std::size_t> layers;  // gates of each; the last is a multiple of `classes`
  std::size_t classes = 2;
  double tau = 1.0;  // the votes of a class are divided by it
  WireKind wires = WireKind::random;
};

// Throws Exception{invalid_input} that names the option when it cannot be built.
void validate(const ClassifierOptions& options);

template <class T>
class GateClassifier;

// Rows of a leaf, and an aligned range of 2^k leaves of a step.
inline constexpr std::size_t kLeafRows = 32;
struct LeafRange {
  std::size_t first = 0, size = 0;
};

// Memory of a forward and backward pass. Movable; made once for the largest batch.
template <class T>
class ClassifierTape {
 public:
  // Without the order of gates, about 30 bytes for each.
  std::size_t bytes() const { return workspace_.bytes(); }
  std::size_t scratch_bytes_per_thread() const { return scratch_bytes_; }

 private:
  friend class GateClassifier<T>;
  TapeLimits limits_;
  unsigned workers_ = 1;
  std::size_t batch_ = kNoPass;  // of the last forward pass
  std::size_t scratch_bytes_ = 0, shards_ = 1;
  Workspace workspace_;
  PlannedWires<T> planned_;
  std::size_t gates_ = 0, scratch_ = 0, sums_ = 0;
  // The ranges of the last backward pass, whose sums are at sums_; for each worker an array and the upper
  // levels of a range's stack, levels_ in all.
  std::vector<LeafRange> ranges_;
  std::size_t stacks_ = 0, levels_ = 1;
};

// A const description; owns no weights. x (B, inputs), y (B, classes): y_k is the sum of the last layer's gates
// [k n, (k + 1) n), n = gates / classes, in order, times 1 / tau. Parameters: layer.l (gates, 16): logits, 0 and 10 for
// gate A at first. Buffers: layer.l.wires (gates, 2), drawn from the seed.
// Only scratch is kept: backward runs a tile of 16 samples again. Order of sums: tile by tile in at most 32 shards of
// adjacent tiles, shards in a tree as in Automaton.
// The leaves of the step's tree (kernels/reduce/tree_sum.h) are kLeafRows samples, tile by tile from
// 0, and what is summed are the four sums of a gate, not the gradients of its logits: these are linear in the sums, and
// no logit changes within a step. Until a step is complete, the first 8 of the 16 numbers of a gate in the gradient and
// its upper levels hold these sums (kernels/gate: kPartial), the others 0; with the last leaf they become the gradient.
// So any contiguous split of leaves is finished by adding flat arrays.
template <class T>
class GateClassifier {
 public:
  using Scalar = T;
  using Batch = RowBatch<T>;
  using Tape = ClassifierTape<T>;

  explicit GateClassifier(ClassifierOptions options);

  const ClassifierOptions& options() const { return options_; }
  const Slices& parameters() const { return parameters_; }
  const Slices& buffers() const { return buffers_; }
  std::size_t input_width() const { return options_.inputs; }
  std::size_t output_width() const { return options_.classes; }
  std::size_t gates() const { return gates_; }

  void initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const;
  // Checks wires that come from a file. Fails, naming layer and gate.
  Result<void> derive(std::span<T> buffers) const;

  // The tape serves executors with at most as many threads as `ex`.
  Tape make_tape(const Exec& ex, const TapeLimits& limits) const;
  void forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
               View<T, 2> y) const;
  void backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const;
  std::size_t leaves(const Batch& batch) const { return divide_up(batch.size, kLeafRows); }
  std::size_t leaf_samples() const { return kLeafRows; }
  // What backward does behind the last leaf.
  void finish_gradient(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, std::span<T> sums) const;

  std::size_t layer_inputs(std::size_t layer) const {
    return layer == 0 ? options_.inputs : options_.layers[layer - 1];
  }
  std::vector<Wire> wires(std::size_t layer, std::span<const T> buffers) const;

 private:
  void check(const Exec& ex, const Batch& batch, const Tape& tape) const;
  std::vector<kernels::gate::LayerPlan> plan(std::span<const T> buffers, kernels::gate::Gate<T>* gates) const;
  void prepare(const Exec& ex, const ModelArrays<T>& arrays, Tape& tape) const;
  kernels::gate::Layer<T> layer(const Tape& tape, std::size_t l) const;
  // f(layer, first, end) for the gates [first, end) of each layer that are among `begin` .. `end` of all.
  template <class F>
  void each_layer(std::size_t begin, std::size_t end, F&& f) const;
  // Runs one tile; returns the rows of the last layer. Layer l's outputs start at row starts_[l + 1].
  const T* run_tile(const Exec& ex, const Batch& batch, std::size_t tile, const Tape& tape, T* signals) const;

  // Adds a tile's sums of gates; fills its rows of dl_dx.
  void tile_backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, std::size_t tile, std::size_t lowest,
                     T* signals, T* sums) const;
  void sum_leaves(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, std::size_t lowest) const;
  void finish_leaves(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, const kernels::reduce::TreeSum<T>& tree,
                     std::size_t lowest) const;

  ClassifierOptions options_;
  Slices parameters_{sizeof(T)}, buffers_{sizeof(T)};
  std::vector<std::size_t> starts_;  // rows: the input's, then each layer's, then the end
  std::size_t gates_ = 0, widest_ = 0;
};

}  // namespace gradloom::logic
