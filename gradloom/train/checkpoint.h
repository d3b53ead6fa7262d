// Checkpoints: a TrainState in a safetensors file, tensor by tensor, without padding (docs/format.md).
#pragma once

#include <filesystem>
#include <optional>

#include "gradloom/base/result.h"
#include "gradloom/exec/arithmetic_names.h"
#include "gradloom/io/safetensors.h"
#include "gradloom/train/state.h"

namespace gradloom {

// What a run remembers beside its state.
struct CheckpointNotes {
  std::uint64_t log_lines = 0;        // lines of the run log that belong to this state
  std::optional<std::uint64_t> data;  // fingerprint of the training data, where it is known
  // That the state was computed in. Files of numerical contract 1 have none: their bits cannot be continued.
  std::optional<Arithmetic> arithmetic = default_arithmetic();
};

// What a checkpoint says about itself before its tensors are looked at.
struct CheckpointHead {
  TrainPosition position;
  std::string scalar;  // "float32" or "float64"
  CheckpointNotes notes;
};

enum class GradientIn { checkpoint, nowhere };

// Written atomically: the file at `path` is the old or the new one at any moment. `gradient` says whether a
// half-accumulated gradient is part of the state. Fails with io.
template <class T>
Result<void> save_checkpoint(const FilePlace& path, const Slices& parameters, const Slices& buffers,
                             const TrainState<T>& state, GradientIn gradient, const CheckpointNotes& notes = {});

// Fails with invalid_input, naming the file, when it is not a checkpoint of this format.
Result<CheckpointHead> checkpoint_head(const TensorFile& file, const std::filesystem::path& path);

// Restores everything that was saved; padding and slices that a model derives are zero. Fails with invalid_input,
// naming file and tensor, when a tensor is missing or of another shape or type.
template <class T>
Result<TrainState<T>> load_checkpoint(const TensorFile& file, const std::filesystem::path& path,
                                      const Slices& parameters, const Slices& buffers);

}  // namespace gradloom
