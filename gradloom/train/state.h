// TrainState: everything a run needs to go on, and nothing about time, threads, paths or hosts.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "gradloom/base/slices.h"
#include "gradloom/exec/buffer.h"
#include "gradloom/train/lbfgs.h"
#include "gradloom/train/optimizer.h"

namespace gradloom {

// Where a run stands. `epoch` counts within the stage, `run_epoch` over all stages (it keys the data order).
struct TrainPosition {
  std::uint64_t stage = 0;
  std::uint64_t epoch = 0;
  std::uint64_t run_epoch = 0;
  std::uint64_t batch = 0;          // batches, or pieces of batches, done in this epoch
  std::uint64_t step = 0;           // optimizer steps done in this stage
  std::uint64_t optimizer_age = 0;  // those of them since the optimizer's memory was last forgotten
  double epoch_loss = 0.0;          // sum over the batches of this epoch of loss * samples
  std::uint64_t epoch_samples = 0;
  std::uint64_t epochs_without_progress = 0;
  bool stage_done = false;    // early stopping or a stalled optimizer ended it
  bool stage_closed = false;  // what follows the last epoch of a stage is done as well; the next stage may begin
};

// The best parameters so far, by validation loss (training loss without validation data).
template <class T>
struct BestState {
  double loss = std::numeric_limits<double>::infinity();
  std::uint64_t run_epoch = 0;
  Buffer<T> parameters;
};

template <class T>
struct TrainState {
  TrainPosition position;
  Buffer<T> parameters, buffers;
  // Meaningful between the micro-batches of one accumulated step: level 0 of the stack of its sums, the upper levels,
  // and the leaves summed so far (models/model.h).
  Buffer<T> gradient, levels;
  std::uint64_t leaves = 0;
  std::vector<OptimizerState<T>> optimizer;  // of an element-wise optimizer
  LbfgsHistory<T> lbfgs;
  std::optional<BestState<T>> best;
  Buffer<T> residual;  // what compressed gradients have not sent yet; empty without such
};

}  // namespace gradloom
