// Trainer: runs one stage of training on any model: batches, loss, backward, optimizer, best-so-far, early stopping.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "gradloom/base/error.h"
#include "gradloom/base/random.h"
#include "gradloom/exec/profile.h"
#include "gradloom/kernels/compress/compress.h"
#include "gradloom/kernels/reduce/reduce.h"
#include "gradloom/models/model.h"
#include "gradloom/train/lbfgs.h"
#include "gradloom/train/loss.h"
#include "gradloom/train/schedule.h"
#include "gradloom/train/state.h"

namespace gradloom {

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
  OptimizerPlace place = OptimizerPlace::automatic;  // read by trainers on a device only, as is the next
  kernels::CompressionOptions compression;           // of gradients that travel to the host
};

// What happened in one epoch.
struct EpochReport {
  TrainPosition position;
  double loss = 0.0;  // mean over the epoch, measured before each update
  double validation = std::numeric_limits<double>::quiet_NaN();
  double learning_rate = 0.0;
  bool improved = false;
};

enum class Continue { yes, stop };

// Whether a step is half done at this position: micro-batches of a step have been added up, and more are to come.
bool is_accumulating(const TrainOptions& options, std::size_t samples, const TrainPosition& position);

// Hooks may be empty. Both run between steps, when the state is consistent and may be saved.
struct TrainHooks {
  std::function<Continue(const TrainPosition&)> after_step;
  std::function<double()> validate;  // the loss on data that is not trained on
  std::function<Continue(const EpochReport&)> after_epoch;
};

enum class StageEnd { finished, stopped };

// One flag per slice; throws when a name matches nothing, naming the slices there are and the option `key`.
std::vector<std::uint8_t> frozen_slices(const Slices& slices, const std::vector<std::string>& names,
                                        const char* key = "freeze");

// A fresh state: arrays of the model's layout with the values that the model initialises them to.
template <class M>
requires Model<M, typename M::Scalar> TrainState<typename M::Scalar> initial_state(const M& model, std::uint64_t seed) {
  TrainState<typename M::Scalar> state;
  state.parameters = Buffer<typename M::Scalar>(model.parameters().flat_size());
  state.buffers = Buffer<typename M::Scalar>(model.buffers().flat_size());
  model.initialise(seed, state.parameters.span(), state.buffers.span());
  return state;
}

// Data that the trainer can batch: RowDataset and its kin.
template <class D, class Batch>
concept Dataset = requires(const D& d, std::span<const std::uint32_t> rows, typename D::Storage& storage,
                           std::size_t n) {
  { d.size() } -> std::convertible_to<std::size_t>;
  { d.make_storage(n) } -> std::same_as<typename D::Storage>;
  { d.gather(rows, storage) } -> std::same_as<Batch>;
  { d.all() } -> std::same_as<Batch>;
};

// Data without an end: `draw` makes the rows of an epoch anew, as a function of (epoch, row) alone. all() is then a
// fixed set of the same kind.
template <class D, class Batch>
concept DrawnDataset = Dataset<D, Batch> &&
    requires(const D& d, std::uint64_t epoch, std::span<const std::uint32_t> rows, typename D::Storage& storage) {
  { d.draw(epoch, rows, storage) } -> std::same_as<Batch>;
};

// A model whose loss and gradients come from elsewhere in one go (DeviceGradients). `restart` forgets what it keeps
// between steps.
template <class M>
concept EvaluatesLoss = requires(const M& m, const Exec& ex, const Step& step,
                                 const ModelArrays<typename M::Scalar>& arrays, const typename M::Batch& batch,
                                 typename M::Tape& tape, const LossOptions& loss,
                                 std::span<typename M::Scalar> gradient) {
  { m.parameters() } -> std::convertible_to<const Slices&>;
  { m.buffers() } -> std::convertible_to<const Slices&>;
  { m.output_width() } -> std::convertible_to<std::size_t>;
  { m.make_tape(ex, TapeLimits{}) } -> std::same_as<typename M::Tape>;
  { m.evaluate(step, arrays, batch, tape, loss, gradient) } -> std::same_as<double>;
  m.restart(tape);
};

template <class M>
concept Trainable = Model<M, typename M::Scalar> || EvaluatesLoss<M>;

// Memory is made in the constructor; a steady-state step allocates nothing. The state belongs to the caller and must
// match the model's layout; an empty optimizer state is created, a present one continues.
template <class M, class D>
requires Trainable<M> && Dataset<D, typename M::Batch>
class Trainer {
 public:
  using T = typename M::Scalar;

  Trainer(const Exec& ex, const M& model, const D& data, TrainOptions options, TrainState<T>& state);

  // Trains until the stage ends or a hook says stop. May be called again to go on. Throws Exception{numeric} when the
  // loss is not finite; the state is then that before the failing step's update.
  StageEnd run(const TrainHooks& hooks = {});

  // One optimizer step or micro-batch, wherever the state stands; false when the epoch is complete.
  bool step();

  // Forgets the optimizer's memory, as after a change of the parameters from outside. Not in the middle of an
  // accumulated step.
  void reset_optimizer();

  // How often step() works in an epoch.
  std::size_t batches_per_epoch() const { return pieces_; }
  std::size_t tape_bytes() const { return tape_.bytes(); }
  const typename M::Tape& tape() const { return tape_; }

 private:
  class Fused;
  typename M::Batch next_batch(std::size_t first, std::size_t count);
  void first_order_step();
  void lbfgs_step();
  double forward_and_backward(const typename M::Batch& batch, const Step& step, const LossOptions& loss,
                              std::span<const T> parameters, std::span<T> gradient, GradientSink* sink);
  void begin_update(double lr, double scale);
  // Whose cache holds the lines of the parameters: anybody's, or the worker's own after claim().
  enum class Lines { foreign, claimed };
  // What a worker has claimed last, side by side; in a cache line of its own.
  struct alignas(64) Claimed {
    std::size_t begin = 0, end = 0;
  };
  void claim(std::size_t begin, std::size_t end);  // nothing with one thread
  void update_elements(std::size_t begin, std::size_t end, Lines lines);
  void apply_update(double lr);
  EpochReport finish_epoch(const TrainHooks& hooks);
  double learning_rate() const;
  ModelArrays<T> arrays(std::span<const T> parameters) const {
    return {Array<const T>(parameters), state_.buffers.array()};
  }

  const Exec& ex_;
  const M& model_;
  const D& data_;
  TrainOptions options_;
  TrainState<T>& state_;
  std::size_t batch_, piece_;  // samples of a batch, and those computed at once
  std::size_t pieces_per_batch_, batches_, pieces_, steps_per_epoch_;
  std::vector<std::uint8_t> frozen_;
  std::vector<std::pair<std::size_t, std::size_t>> update_ranges_;
  std::vector<Claimed> claimed_;  // one per worker
  typename M::Tape tape_;
  typename D::Storage storage_;
  std::vector<std::uint32_t> order_;
  std::uint64_t order_epoch_ = std::numeric_limits<std::uint64_t>::max();
  Buffer<T> y_, dl_dy_;
  std::vector<double> partials_;
  std::vector<T> reduce_scratch_;
  std::unique_ptr<ElementOptimizer<T>> elements_;
  std::unique_ptr<ElementOptimizer<T>> without_decay_;  // null: every slice decays alike
  std::vector<std::uint8_t> decays_;                    // one flag per slice
  std::unique_ptr<Lbfgs<T>> lbfgs_;
  struct {
    std::size_t data = 0, forward = 0, loss = 0, backward = 0, optimizer = 0;
  } phases_;
};

}  // namespace gradloom

#include "gradloom/train/trainer.inc"
