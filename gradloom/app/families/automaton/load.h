// What the cells of an automaton learn, with the picture that options name.
#pragma once

#include <filesystem>

#include "gradloom/base/result.h"
#include "gradloom/session/families/automaton/options.h"

namespace gradloom::app {

// Fails when a picture cannot be read.
Result<GridTask> load_automaton(const AutomatonOptions& options, const std::filesystem::path& data_root);

}  // namespace gradloom::app
