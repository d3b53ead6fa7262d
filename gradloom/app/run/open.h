// Runs that are there already: their recipe, their session, and the state of their last checkpoint.
#pragma once

#include <memory>
#include <new>
#include <optional>
#include <span>

#include "gradloom/app/run/run.h"
#include "gradloom/io/run_folder.h"

namespace gradloom::app {

// What to do when a run's data have changed since it was saved: going on would mix two runs; a look at it is harmless.
enum class OtherData { refuse, tell };

// The recipe of a run. `edited`, if it is not null, is set to whether it was edited after the run was started.
Result<Config> reopen_recipe(const RunFolder& folder, bool* edited = nullptr);

// Fails with invalid_input when `out` would replace what a command on `model` (a model file, or the folder of a run)
// reads or owns: the model, a file of its run, data that the recipe of the run names, one of `others` (a file, or any
// in a folder). A recipe that cannot be read is left to those who open it.
Result<void> refuse_overwriting_inputs(const std::filesystem::path& out, const std::filesystem::path& model,
                                       const std::filesystem::path& data_root,
                                       std::span<const std::filesystem::path> others = {});

// The session of a run, from wherever this is called: fails with not_found, saying where data were looked for.
Result<std::unique_ptr<Session>> reopen_session(const Config& recipe, const RunOptions& options,
                                                const RunFolder& folder);

// The options for a run that is there already: its arithmetic is that of its checkpoint. A look at it takes another
// where the processor lacks that; going on does not. What is wrong with the checkpoint is left to restore().
Result<RunOptions> follow_checkpoint(const RunFolder& folder, RunOptions options, OtherData other);

struct Restored {
  std::uint64_t log_lines = 0;
  bool short_log = false, data_changed = false;
  std::vector<std::string> warnings;  // that the newest checkpoint was not used, or that the log has lost lines
};

// The state of the folder's checkpoint.
Result<Restored> restore(Session& session, const RunFolder& folder, OtherData other, const RunOptions& options);

// Fails with not_found where there is none yet.
Result<void> require_checkpoint(const RunFolder& folder);

// Warnings are for the caller to pass on; the log does not have them.
struct OpenedRun {
  Config recipe;
  std::unique_ptr<Session> session;
  std::vector<std::string> warnings;  // that an older checkpoint is used, or that the training data have changed
};

// Loads the data that the recipe names. Fails with not_found when there is no checkpoint yet.
Result<OpenedRun> open_run(const RunFolder& folder, const RunOptions& options);

// A model that can be asked, and what is known of its training.
struct OpenedModel {
  std::unique_ptr<Session> session;
  std::uint64_t epochs = 0;
  bool finished = true;
  std::vector<std::string> warnings;  // as of a run
};

// What of a run is opened: its model file where there is one, which needs no training data, unless the checkpoint is of
// a later epoch and can be opened; or its last checkpoint.
enum class PartOfRun { model_file, checkpoint };

// `model` is a model file or the folder of a run. Fails as open_model() and open_run() do.
Result<OpenedModel> open_model_or_run(const std::filesystem::path& model, const RunOptions& options, PartOfRun part);

// How a rank takes part in a look at these files, which none of them changes: with its options where all ranks see
// them; else rank 0 works alone, and there is nothing to do for the others. Throws Exception{io} where they differ.
// Without ranks: the options.
std::optional<RunOptions> options_of_rank(RunOptions options, std::span<const std::filesystem::path> files);

// Runs `work`, which may throw, as a function that fails.
template <class Work>
auto guarded(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const Exception& e) {
    return e.error();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory for this model and batch; try a smaller train.batch"};
  }
}

}  // namespace gradloom::app
