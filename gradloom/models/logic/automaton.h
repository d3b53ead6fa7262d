// A logic automaton: a cellular automaton whose cells update themselves by a circuit of soft gates (docs/math).
#pragma once

#include <vector>

#include "gradloom/base/function_ref.h"
#include "gradloom/base/result.h"
#include "gradloom/circuit/circuit.h"
#include "gradloom/data/batch.h"
#include "gradloom/kernels/gate/patch.h"
#include "gradloom/models/logic/planned_wires.h"
#include "gradloom/models/logic/tile.h"
#include "gradloom/models/logic/wires.h"
#include "gradloom/models/shards.h"

namespace gradloom::logic {

using circuit::Boundary;

// Which cells fire in Mode::evaluate when fire_probability is below 1.
enum class EvaluationFiring { all, random };

// What a cell is whose first target channel has a mask of 0 in the batch.
enum class MaskedCells {
  ordinary,  // like any other; only the loss leaves it out
  dead,      // its state is 0 from the start to the end
};

struct AutomatonOptions {
  std::size_t channels = 1;                         // C
  std::size_t kernels = 16;                         // K
  std::vector<std::size_t> perception{8, 4, 2, 1};  // gates of each layer of a kernel; the first reads the patch: 8
  std::vector<std::size_t> update;                  // gates of each layer; the last has C
  WireKind wires = WireKind::unique;                // of every layer but the first of perception
  Boundary boundary = Boundary::periodic;
  std::size_t height = 16, width = 16;  // H, W
  std::size_t steps = 20;               // of the automaton in one forward pass
  std::size_t target_channels = 1;      // Ct: the first channels are the output
  double fire_probability = 1.0;        // of a cell in a step; 1: synchronous
  EvaluationFiring evaluation = EvaluationFiring::all;
  MaskedCells masked = MaskedCells::ordinary;
  // In Mode::train each logit gets this times Gumbel noise of the step's own, the same in forward and backward: gates
  // whose choice is a close call fail now and then, so that training makes up its mind.
  double gate_noise = 0.0;
  std::uint32_t noise_ramp = 0;   // epochs over which the noise grows from nothing
  std::uint32_t noise_again = 0;  // after so many epochs it grows from nothing again; 0: never
};

// Throws Exception{invalid_input} that names the option when it cannot be built.
void validate(const AutomatonOptions& options);

template <class T>
class Automaton;

// Memory of a forward and backward pass: the grids of all steps, what they are differentiated with, and scratch per
// thread. Movable; made once for the largest batch.
template <class T>
class AutomatonTape {
 public:
  // Without the order of gates, about 30 bytes for each.
  std::size_t bytes() const { return workspace_.bytes(); }
  // The grids of all steps (with backward: steps + 1, else 2), for the largest batch.
  std::size_t grid_bytes() const { return grid_bytes_; }
  // Depends on the circuit alone, not on grid, batch or steps.
  std::size_t scratch_bytes_per_thread() const { return scratch_bytes_; }
  // Gradients of patches, kept between the pass over tiles and the pass that collects them: at most 4 MB, or five rows
  // of the grid where that is more.
  std::size_t patch_bytes() const { return patch_bytes_; }

 private:
  friend class Automaton<T>;
  struct Offsets {
    std::size_t grids, gates, logits, dead, scratch, gradients, patches, sums, firing, block_cells, block_tiles;
  };
  TapeLimits limits_;
  unsigned workers_ = 1;
  std::size_t batch_ = kNoPass;                    // of the last forward pass
  std::size_t first_sample_ = 0, of_samples_ = 0;  // where it stands in a larger one; 0: it is whole
  bool some_dead_ = false;                         // in that batch
  std::size_t grid_bytes_ = 0, scratch_bytes_ = 0, patch_bytes_ = 0;
  std::size_t group_ = 1, band_ = 1, slots_ = 1, shards_ = 1, used_shards_ = 1;
  Workspace workspace_;
  PlannedWires<T> planned_;
  Offsets at_{};
  struct {
    std::size_t coefficients = 0, forward = 0, tiles = 0, gather = 0, logits = 0;
  } phases_;
};

// A const description; owns no weights.
// x is (B, C H W): channel planes, row-major, cell y W + x of channel c at (c H + y) W + x; values in [0, 1]. y is
// (B, Ct H W), the planes of the first Ct channels after `steps` steps.
// Parameters: perception.l (K, gates, 16), update.l (gates, 16): logits. Buffers: perception.l.wires, update.l.wires
// (gates, 2), which are drawn from the seed. Neither depends on H, W, steps or boundary: the same arrays run on any
// grid by way of another Automaton that differs in these options only (with_grid).
//
// A step of a cell: its patch is the 3x3 neighbourhood of each channel; every kernel runs on every channel; the update
// circuit reads [centre of channel 0..C-1] ++ [perception outputs by channel, then output, then kernel] and gives the
// new state. With fire_probability < 1 a cell keeps its state in steps in which it does not fire.
//
// Order of sums: gates within a tile as in kernels/gate; the sums of a tile are added channel by channel (perception),
// tile by tile and step by step, last step first, to one of at most 32 shards; shards are added in a tree: 0+1, 2+3,
// ..., then these. How tiles are made and dealt to shards depends on options, batch and fire mask only:
// docs/math/logic.md. The batch is a leaf of the step's tree (kernels/reduce/tree_sum.h): logits have noise of their
// own in every batch. Shards do not depend on the fire mask: they are several whole samples, or
// contiguous cells of a sample (of a band of its rows, where a grid is too large to keep the gradients of all its
// patches); cells that fire are compacted into tiles within a shard.
template <class T>
class Automaton {
 public:
  using Scalar = T;
  using Batch = RowBatch<T>;
  using Tape = AutomatonTape<T>;

  explicit Automaton(AutomatonOptions options);

  const AutomatonOptions& options() const { return options_; }
  const Slices& parameters() const { return parameters_; }
  const Slices& buffers() const { return buffers_; }
  std::size_t cells() const { return options_.height * options_.width; }
  std::size_t input_width() const { return options_.channels * cells(); }
  std::size_t output_width() const { return options_.target_channels * cells(); }

  std::size_t gates() const { return gates_; }                        // with logits of their own
  std::size_t gate_evaluations() const { return gate_evaluations_; }  // per cell and step
  // The same circuit on another grid.
  Automaton with_grid(std::size_t height, std::size_t width, std::size_t steps) const;

  // Logits 0, and 10 for gate A; wires by the seed.
  void initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const;

  // Checks wires that come from a file. Fails, naming layer and gate.
  Result<void> derive(std::span<T> buffers) const;

  // The tape serves executors with at most as many threads as `ex`.
  Tape make_tape(const Exec& ex, const TapeLimits& limits) const;

  // Throws when the batch does not fit the tape or the grid, the wires are not valid, or (backward) no forward pass of
  // the same step came before.
  void forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
               View<T, 2> y) const;
  void backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const;
  std::size_t leaves(const Batch&) const { return 1; }
  std::size_t leaf_samples() const { return 0; }

  // What ranks share (models/shards.h): whole samples, unless a grid is so large that its rows are cut into bands.
  ShardLayout shards(std::size_t samples) const;
  std::size_t shard_numbers() const { return gates_ * kernels::gate::kPartial; }
  void place(Tape& tape, std::size_t first, std::size_t samples) const {
    tape.first_sample_ = first, tape.of_samples_ = samples;
  }
  void sum_shards(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const;
  void add_shards(Tape& tape, std::size_t first, std::size_t count, std::span<T> to) const;
  void finish_shards(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, std::span<T> sums) const;

  // Does a cell fire? A function of (step.seed, step.epoch, step.index, sample of the batch, step t, cell) alone.
  bool fires(const Step& step, std::size_t sample, std::size_t t, std::size_t cell) const;
  bool synchronous(const Step& step) const;

  // The state of channel c of a cell before step t of the last forward pass (t = steps: after the last); all t when the
  // tape was made for backward, else t = steps only.
  T state(const Tape& tape, std::size_t sample, std::size_t t, std::size_t c, std::size_t cell) const;

  // A layer: where its logits and wires lie. Gate (j, k), j of gates and k of kernels, is gate j * kernels + k.
  struct Layer {
    std::size_t parameter, buffer;  // slices
    std::size_t in, gates, kernels;
    std::size_t first;  // among all gates of the circuit
  };
  const std::vector<Layer>& perception() const { return perception_; }
  const std::vector<Layer>& update() const { return update_; }
  std::vector<Wire> wires(const Layer& layer, std::span<const T> buffers) const;

  // What a tile needs to run: the order in which the gates of every layer are evaluated, a function of the wires, and
  // gates() gates with their rows; then, from the logits, their coefficients. `plan` throws when wires are not valid.
  std::vector<kernels::gate::LayerPlan> plan(std::span<const T> buffers, std::span<kernels::gate::Gate<T>> gates) const;
  void prepare(const Exec& ex, const ModelArrays<T>& arrays, std::span<const kernels::gate::LayerPlan> plans,
               std::span<kernels::gate::Gate<T>> gates) const;
  const CellShape& shape() const { return shape_; }

 private:
  // Cells [begin, end) of a batch, numbered sample * cells() + cell, in one step.
  struct Wave {
    std::size_t t, begin, end;
  };
  void check(const Exec& ex, const Step& step, const Batch& batch, const Tape& tape) const;
  RandomStream fire_stream(const Step& step, std::size_t sample) const;
  // fires() of cells `first` and following of the batch, many at once.
  void fire_mask(const Exec& ex, const Step& step, std::size_t t, std::size_t first,
                 std::span<std::uint8_t> fire) const;
  // Lists the cells of the wave that fire, in blocks; calls `rest` with the others of each block, if any, from several
  // threads at once.
  void find_firing(const Exec& ex, const Step& step, const Wave& wave, Tape& tape,
                   FunctionRef<void(std::span<const std::uint32_t> cells)> rest) const;
  std::size_t tiles(const Step& step, const Wave& wave, const Tape& tape) const;
  std::size_t cells_of(const Step& step, const Wave& wave, std::size_t tile, const Tape& tape,
                       std::uint32_t* cells) const;
  void forward_step(const Exec& ex, const Step& step, std::size_t t, Tape& tape) const;
  void backward_step(const Exec& ex, const Step& step, std::size_t t, Tape& tape, bool inputs) const;
  // The gradients of the patches of cells that rest: they keep their state.
  void rest_backward(const Wave& wave, std::span<const std::uint32_t> resting, Tape& tape) const;
  void backward_wave(const Exec& ex, const Step& step, const Wave& wave, Tape& tape, bool inputs) const;
  // At most kTile cells: fills the gradients of their patches, unless no `inputs` are asked for, and adds the sums.
  void backward_tile(const Exec& ex, const Wave& wave, std::span<const std::uint32_t> numbers, Tape& tape,
                     unsigned worker, bool inputs, T* sums) const;
  void gather(const Exec& ex, const Wave& wave, std::size_t first_row, std::size_t rows, Tape& tape) const;
  // What the gates are made of in this step: the parameters, or a noisy copy of them in the tape.
  ModelArrays<T> noisy_logits(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, Tape& tape) const;
  // Every cell is computed in every step.
  bool whole(const Step& step, const Tape& tape) const { return synchronous(step) && !tape.some_dead_; }
  void start(const Exec& ex, const Batch& batch, Tape& tape) const;
  bool noisy(const Step& step) const { return options_.gate_noise > 0 && step.mode == Mode::train; }
  bool banded() const;
  bool any_trains(const Step& step) const;
  const Layer& layer(std::size_t l) const {  // perception first
    return l < perception_.size() ? perception_[l] : update_[l - perception_.size()];
  }
  CellCircuit<T> circuit(const Tape& tape) const;
  kernels::gate::GridShape grid_shape() const;
  // The frames of all samples of one step's state.
  void close_frames(const Exec& ex, const Tape& tape, T* state) const;
  T* grid(Tape& tape, std::size_t t) const;
  T* gradient_grid(Tape& tape, std::size_t t) const;

  AutomatonOptions options_;
  Slices parameters_{sizeof(T)}, buffers_{sizeof(T)};
  std::vector<Layer> perception_, update_;
  CellShape shape_;
  std::size_t gates_ = 0, gate_evaluations_ = 0;
};

}  // namespace gradloom::logic
