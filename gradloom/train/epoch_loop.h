// EpochLoop: one stage of training, wherever its steps are computed: batches and their order, accumulation, schedule,
// epochs, best-so-far, early stopping. Trainers derive from it and compute the pieces of a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gradloom/base/slices.h"
#include "gradloom/kernels/compress/compress.h"
#include "gradloom/kernels/gradient_mode.h"
#include "gradloom/train/loss.h"
#include "gradloom/train/schedule.h"
#include "gradloom/train/state.h"

namespace gradloom {

class Comm;

// Where parameters are updated when a device computes the gradients.
enum class OptimizerPlace {
  automatic,  // on the device; on the host for L-BFGS
  device,
  host,  // gradients travel, compressed if asked
};

enum class FusedUpdate {
  automatic,  // each finished range is updated while it is in the cache, where that is right
  off,        // one update at the end of the step; the same bits
};

struct TrainOptions {
  std::uint64_t seed = 0;
  std::uint64_t epochs = 100;
  std::size_t batch = 64;      // samples; 0: all at once
  std::size_t accumulate = 1;  // batches per optimizer step; the loss is the mean over the samples of all of them
  // Samples that are computed at once: larger batches are cut, and their gradients accumulate. 0: whole batches. The
  // results stay the same bits for models that say so (graph networks without batch norm).
  std::size_t parallel_examples = 0;
  bool shuffle = true;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  LossOptions loss;
  std::vector<std::string> freeze;  // names of parameter slices, or prefixes that end in '*'
  std::vector<std::string> decay;   // those that optimizer.weight_decay is for; empty: all
  std::uint64_t patience = 0;       // epochs without progress before the stage ends (turns state.best on); 0: never
  FusedUpdate fused = FusedUpdate::automatic;
  OptimizerPlace place = OptimizerPlace::automatic;   // read by trainers on a device only, as is the next
  kernels::compress::CompressionOptions compression;  // of gradients that travel to the host
  // Ranks that share each step, where the model can be shared (HostTrainer::leaf_samples); the same bits. All of them
  // train at the same time with the same options and state. Null: this process alone. Not owned.
  Comm* comm = nullptr;
};

// Whether gradients of a device travel to an optimizer on the host.
bool optimizes_on_host(const TrainOptions& options);

// What happened in one epoch.
struct EpochReport {
  TrainPosition position;
  double loss = 0.0;  // mean over the epoch, measured before each update
  double validation = std::numeric_limits<double>::quiet_NaN();
  double learning_rate = 0.0;
  bool improved = false;
};

enum class Continue { yes, stop };

// Hooks may be empty. All run between steps, when the state is consistent and, after sync(), may be saved.
struct TrainHooks {
  std::function<Continue(const TrainPosition&)> after_step;
  std::function<double()> validate;  // the loss on data that is not trained on
  std::function<Continue(const EpochReport&)> after_epoch;
};

enum class StageEnd { finished, stopped };

// Whether a step is half done at this position: micro-batches of a step have been added up, and more are to come.
bool is_accumulating(const TrainOptions& options, std::size_t samples, const TrainPosition& position);

// One flag per slice that a name, or a prefix that ends in '*', matches. Throws when one matches nothing, naming the
// slices there are and the option.
std::vector<std::uint8_t> match_slices(const Slices& slices, const std::vector<std::string>& names, const char* option);

// What is computed at once: a batch, or a part of one. Several batches may make one optimizer step.
struct Piece {
  std::size_t batch = 0;             // its batch's number in the epoch
  std::size_t first = 0, count = 0;  // samples, in the order of the epoch
  GradientMode gradient = GradientMode::overwrite;
  bool completes_step = true;  // the parameters are updated with it
  LossOptions loss;            // normalised over all samples of the step
  double share = 1.0;          // of its loss in the sum over the epoch
  double learning_rate = 0.0;
};

// The position is that of a state which belongs to the caller and outlives the loop.
class EpochLoop {
 public:
  // Whether best parameters are kept at all, and whether those of this epoch are the best so far.
  struct Best {
    bool tracked = false, improved = false;
  };

  virtual ~EpochLoop() = default;
  EpochLoop(const EpochLoop&) = delete;
  EpochLoop& operator=(const EpochLoop&) = delete;

  // Trains until the stage ends or a hook says stop. May be called again to go on. Throws Exception{numeric} when the
  // loss is not finite; the state is then that before the failing step's update.
  StageEnd run(const TrainHooks& hooks = {});

  // One optimizer step or micro-batch, wherever the state stands; false when the epoch is complete.
  bool step();

  // Forgets the optimizer's memory, as after a change of parameters or buffers from outside, which a device is told
  // by this. Not in the middle of an accumulated step.
  virtual void reset_optimizer() = 0;

  // Brings the state on the host up to date, for somebody who reads it.
  virtual void sync() {}

  // Milliseconds of each kernel so far, by label, on a device with timestamps.
  virtual std::map<std::string, double> kernel_times() const { return {}; }

  // Of ranks that share the steps, each may hold a part of the optimizer's memory. Makes it whole in the state of rank
  // 0, for who saves it, or of all ranks; all of them call it together.
  enum class StateOf { rank_0, all_ranks };
  virtual void collect_state(StateOf) {}
  // Of ranks that share the steps, those that have nothing to compute in the largest batch.
  virtual std::vector<unsigned> idle_ranks() const { return {}; }

  // How often step() works in an epoch.
  std::size_t batches_per_epoch() const { return pieces_; }

 protected:
  // Throws invalid_input for options that no trainer can follow with so many samples.
  EpochLoop(TrainOptions options, std::size_t samples, TrainPosition& position);

  // Computes one piece, updates the parameters if it completes a step, and adds loss * share to the position's
  // epoch_loss, at the latest in sync().
  virtual void compute(const Piece& piece) = 0;
  // Keeps the parameters if their loss is the lowest so far.
  virtual Best keep_best(double loss) = 0;

  // Throws invalid_input when batches are cut inside of leaves of so many samples, under the contract that has such.
  void check_pieces(std::size_t leaf_samples) const;
  // The most that a step has, of leaves of so many samples.
  std::size_t leaves_of_step(std::size_t leaf_samples) const;
  // Throws invalid_input when a state that is in the middle of a step has not summed as many as its position says.
  void check_leaves(std::uint64_t leaves, std::size_t leaf_samples) const;

  const TrainOptions& options() const { return options_; }
  TrainPosition& position() { return position_; }
  const TrainPosition& position() const { return position_; }
  std::size_t samples() const { return samples_; }
  std::size_t largest_piece() const { return piece_; }
  bool one_piece() const { return pieces_ == 1; }
  // The rows of a piece: numbers of samples, in the order of the epoch.
  std::span<const std::uint32_t> rows(const Piece& piece);

 private:
  Piece next_piece() const;
  double learning_rate() const;
  EpochReport finish_epoch(const TrainHooks& hooks);

  TrainOptions options_;
  std::size_t samples_;
  TrainPosition& position_;
  std::size_t batch_, piece_;  // samples of a batch, and those computed at once
  std::size_t pieces_per_batch_, pieces_, steps_per_epoch_;
  std::vector<std::uint32_t> order_;
  std::uint64_t order_epoch_ = std::numeric_limits<std::uint64_t>::max();
};

// Forgets what an optimizer remembers and the epoch that was begun: the state goes on with fresh memory from the start
// of that epoch.
template <class T>
void restart_optimizer(const TrainOptions& options, std::size_t samples, TrainState<T>& state);

// Leaves of an optimizer step that were summed before a piece (Step::leaf); `leaves` is TrainState::leaves.
std::size_t first_leaf(const Piece& piece, std::uint64_t leaves);

// For messages: whether a NaN has a sign tells nobody anything.
double shown(double value);
[[noreturn]] void fail_norm(double norm, const TrainPosition& at);

// For trainers: makes what a state lacks (a gradient, state.best where there is patience). Throws invalid_input when
// its arrays are not of these sizes.
template <class T>
void prepare_state(const TrainOptions& options, const Slices& parameters, const Slices& buffers, TrainState<T>& state);

// Implements EpochLoop::keep_best() for a state.
template <class T>
EpochLoop::Best keep_best_parameters(TrainState<T>& state, double loss);

}  // namespace gradloom
