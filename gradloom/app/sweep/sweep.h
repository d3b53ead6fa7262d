// Sweeps: a recipe trained with every combination of some settings, several runs at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
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
  nlohmann::json summary = nlohmann::json::object();  // as to_json(RunSummary)
  std::optional<Error> error;                         // of a run that failed
  bool interrupted() const { return summary.value("interrupted", false); }
  bool ended() const { return begun && !error && !interrupted(); }
};

// Whether a failure lies in the settings of one run: another combination may do better. A full disk ends a sweep.
bool is_of_one_run(ErrorCode code);

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

// Trains those of this process; `done` hears of each, one at a time, in the order in which they end. Failures are noted
// in the runs. One that is not of one run, or a stop, lets the runs at work end or save, and begins no others. No run
// has progress.
void run_sweep(std::vector<SweepRun>& runs, const SweepOptions& options, const RunOptions& run_options,
               const std::function<void(const SweepRun&)>& done);

// A row for each combination of which a run has ended or failed: its values, of each metric on validation and test data
// the median over seeds, how many runs failed, the share of the others and them that reached its goal (where runs have
// one), and how many are unfinished (where some are).
struct SweepTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::pair<std::string, std::string>> failures;  // run, what was wrong
  std::size_t ended = 0;                                      // runs that did not fail
};
SweepTable sweep_table(const std::vector<SweepRun>& runs, const SweepOptions& options);

// Of the runs of several seeds; there is at least one value.
double median_of(std::vector<double> values);

// Writes sweep.csv and report.html into the folder.
Result<void> write_sweep(const SweepTable& table, const SweepOptions& options, const std::string& title);

}  // namespace gradloom::app
