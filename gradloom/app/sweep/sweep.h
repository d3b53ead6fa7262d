// Sweeps: a recipe trained with every combination of some settings, several runs at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "gradloom/app/run/run.h"

namespace gradloom::app {

// A key and the values to try: texts as they stand behind the '=' of an override.
struct SweepKey {
  std::string key;
  std::vector<std::string> values;
};

// "optimizer.lr=0.1,0.01": commas separate values, but for those inside of quotes, [lists] and {tables}. Fails with
// invalid_input, naming what is missing.
Result<SweepKey> parse_sweep(const std::string& text);

struct SweepRun {
  std::vector<std::string> overrides;  // one of each swept key, then the seed
  std::int64_t seed = 0;
  Config recipe;
  std::filesystem::path folder;
  // Afterwards:
  bool begun = false;
  nlohmann::json summary =
      nlohmann::json::object();  // as to_json(RunSummary); {"error": {"code", "message"}} of a run that failed
};

struct SweepOptions {
  std::vector<SweepKey> keys;
  std::int64_t first_seed = 0;
  unsigned seeds = 1;
  unsigned jobs = 1;  // runs at a time; with a device one, because a device is used by one thread
  // Of all runs, those that this process trains: `part`, `part` + `parts`, ...
  unsigned part = 0, parts = 1;
  std::filesystem::path folder;
};

// All runs, without training them: the last key changes fastest, seeds faster still. `load` makes the recipe of some
// overrides. Folders are KEY=VALUE,KEY=VALUE inside of `folder`, with /seed-S where there are several seeds. Fails with
// invalid_input on more than 10,000 runs and on combinations that share a folder.
Result<std::vector<SweepRun>> plan_sweep(const SweepOptions& options,
                                         const std::function<Config(std::vector<std::string>)>& load);

// Trains those of this process; `done` hears of each, one at a time, in the order in which they end. A run that
// diverges is noted; any other failure ends the sweep and is returned. A stop lets the runs at work save, and begins no
// others. No run has progress.
Result<void> run_sweep(std::vector<SweepRun>& runs, const SweepOptions& options, const RunOptions& run_options,
                       const std::function<void(const SweepRun&)>& done);

// A row for each combination: its values, how many runs failed, and of each metric on validation and test data the
// median over seeds.
struct SweepTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
SweepTable sweep_table(const std::vector<SweepRun>& runs, const SweepOptions& options);

// Of the runs of several seeds; there is at least one value.
double median_of(std::vector<double> values);

// Writes sweep.csv and report.html into the folder.
Result<void> write_sweep(const SweepTable& table, const SweepOptions& options, const std::string& title);

}  // namespace gradloom::app
