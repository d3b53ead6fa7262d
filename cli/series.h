// Several runs of one command: --seeds and --sweep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/run_watch.h"

namespace gradloom::cli {

struct TrainFlags {
  RecipeFlags recipe;
  ExecFlags exec;
  std::string out;
  std::optional<std::int64_t> seed;
  std::optional<unsigned> seeds;
  std::vector<std::string> sweeps;
  bool profile = false;
};

// Whether a run may be made there: there is nothing, or an empty folder.
bool is_free(const std::filesystem::path& path);

RecipeFlags with_seed(RecipeFlags flags, std::int64_t seed);

WatchedRun train_once(const Output& out, const Config& recipe, const std::filesystem::path& folder,
                      const app::RunOptions& options);

// Seeds `first`, `first` + 1, ..., each in its own folder inside of `folder`. Ranks train them side by side where each
// has one and sees the folder; else all of them train one after the other. Returns the exit code.
int train_seeds(const Output& out, const TrainFlags& flags, std::int64_t first, const std::filesystem::path& folder,
                const app::RunOptions& options);

// Every combination of flags.sweeps. Ranks train them side by side where they see the folder; else rank 0 trains all.
int train_sweep(const Output& out, const TrainFlags& flags, std::int64_t first, const std::filesystem::path& folder,
                app::RunOptions options);

}  // namespace gradloom::cli
