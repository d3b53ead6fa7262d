// Whether a checkpoint can have come from a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "gradloom/base/result.h"
#include "gradloom/train/state.h"

namespace gradloom {

// Fails when a run of stages of so many epochs on `samples` training samples can never stand at this position; `file`
// is the checkpoint.
Result<void> check_position(std::span<const std::uint64_t> epochs, std::size_t samples, const TrainPosition& at,
                            const std::string& file);

}  // namespace gradloom
