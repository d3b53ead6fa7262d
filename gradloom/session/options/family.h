// Options that every family has: name, precision, training.
#pragma once

#include <optional>
#include <string>

#include "gradloom/base/choice.h"
#include "gradloom/train/trainer.h"

namespace gradloom {

enum class Precision { float32, float64 };
inline constexpr Choice<Precision> kPrecisions[] = {
    {Precision::float32, "float32", "single"},
    {Precision::float64, "float64", "double"},
};

inline constexpr Choice<OptimizerPlace> kOptimizerPlaces[] = {
    {OptimizerPlace::automatic, "auto", "on the device; on the host with L-BFGS, sparsity or pruned edges"},
    {OptimizerPlace::device, "device", "on the device"},
    {OptimizerPlace::host, "host", "on the host"},
};

struct TrainingOptions : TrainOptions {
  std::optional<LossKind> loss_kind;  // takes precedence over loss.kind; unset: that of the task, see train_options()
  // End each stage with the parameters of the lowest loss on validation data, or with patience on training data.
  std::optional<bool> best;           // unset: yes
  std::size_t restarts = 1;           // starts from different weights; the one with the lowest training loss goes on
  std::uint64_t restart_epochs = 10;  // of each start
  double checkpoint_seconds = 30.0;   // between two checkpoints

  bool keep_best() const { return best.value_or(true); }
};

// Families derive theirs and add their data and model, and `stages`: the complete options of each stage, none for a run
// of one.
struct FamilyOptions {
  std::optional<std::string> name;  // in titles of reports
  std::string family;
  Precision precision = Precision::float32;
  TrainingOptions train;
};

// The seed of a family's data, or else that of its training.
template <class O>
std::uint64_t data_seed(const O& options) {
  return options.data.seed.value_or(options.train.seed);
}

// The options of a stage.
template <class O>
const O& stage_of(const O& options, std::size_t stage) {
  return options.stages.empty() ? options : options.stages[stage];
}
template <class O>
std::size_t stage_count(const O& options) {
  return options.stages.empty() ? 1 : options.stages.size();
}

// What a trainer needs. The loss is the mean squared error, unless one is chosen.
inline TrainOptions train_options(const FamilyOptions& o) {
  TrainOptions t = o.train;
  t.loss.kind = o.train.loss_kind.value_or(LossKind::mse);
  return t;
}

// "auto" or the name of the chosen loss.
inline std::string_view loss_name(const FamilyOptions& o) {
  return o.train.loss_kind ? name_of(kLosses, *o.train.loss_kind) : "auto";
}

}  // namespace gradloom
