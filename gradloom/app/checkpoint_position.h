// Whether a checkpoint can have come from a recipe.
#pragma once

#include <cstddef>
#include <string>

#include "gradloom/base/result.h"
#include "gradloom/io/config.h"
#include "gradloom/train/state.h"

namespace gradloom::app {

// Fails when a run of `recipe` on `samples` training samples can never stand at this position; `file` is the
// checkpoint.
Result<void> check_position(const Config& recipe, std::size_t samples, const TrainPosition& at,
                            const std::string& file);

}  // namespace gradloom::app
