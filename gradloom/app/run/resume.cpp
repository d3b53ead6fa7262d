#include <fmt/format.h>

#include <limits>

#include "gradloom/app/recipe.h"
#include "gradloom/app/run/checkpoints.h"
#include "gradloom/app/run/open.h"
#include "gradloom/app/run/run.h"
#include "gradloom/app/run/training.h"
#include "gradloom/comm/comm.h"
#include "gradloom/exec/arithmetic_names.h"
#include "gradloom/io/file.h"
#include "gradloom/io/run_log.h"
#include "gradloom/train/checkpoint.h"

namespace gradloom::app {
namespace {

// The checkpoint that rank 0 goes on with, for those who may not see its folder: recipe, then file, empty where there
// is none yet.
Result<void> send_checkpoint(Comm& comm, const Config& recipe, const RunFolder& folder) {
  std::string bytes;
  if (folder.has_checkpoint()) {
    auto saved = read_checkpoint(folder, {});
    if (!saved) return saved.error();
    auto text = read_file(saved->place, std::numeric_limits<std::size_t>::max());
    if (!text) return text.error();
    bytes = std::move(*text);
  }
  comm.broadcast(recipe.to_toml());
  comm.broadcast(bytes);
  return {};
}

// A rank other than 0 that goes on with a run.
Result<RunSummary> follow_resume(RunOptions options) {
  const std::string toml = options.comm->broadcast({}), bytes = options.comm->broadcast({});
  const std::vector<std::string> none;
  auto recipe = parse_recipe(toml, "the recipe of rank 0", none);
  if (!recipe) return recipe.error();
  constexpr const char* kName = "the checkpoint of rank 0";
  std::optional<TensorFile> file;
  if (!bytes.empty()) {
    auto parsed = parse_safetensors(std::as_bytes(std::span(bytes)), kName);
    if (!parsed) return parsed.error();
    file = std::move(*parsed);
    const auto head = checkpoint_head(*file, kName);
    if (head && head->notes.arithmetic) {
      if (!available(*head->notes.arithmetic))
        return Error{ErrorCode::unsupported,
                     fmt::format("the run was trained in {} arithmetic, which this processor does not have",
                                 name_of(kArithmetics, *head->notes.arithmetic))};
      options.exec.variant.arithmetic = *head->notes.arithmetic;
    }
  }
  auto session = open_session(*recipe, options);
  if (!session) return session.error();
  if (file) {
    auto found = (*session)->restore(*file, kName);
    if (!found) return found.error();
    if (found->old_contract) (*session)->restart_optimizer();
  }
  meet_ranks(*recipe, **session, options);
  if (!file && (*session)->shares_steps() && (*session)->start() == TrainEnd::stopped)
    return RunSummary{.interrupted = true};
  return train_share(family_of(*recipe), **session, options);
}

}  // namespace

Result<RunSummary> resume(const std::filesystem::path& path, const RunOptions& given) {
  if (follows(given)) return guarded([&] { return follow_resume(given); });
  auto folder = RunFolder::open(path, FolderAccess::write);
  if (!folder) return folder.error();
  bool edited = false;
  auto recipe = reopen_recipe(*folder, &edited);
  if (!recipe) return recipe.error();
  const auto followed = follow_checkpoint(*folder, given, OtherData::refuse);
  if (!followed) return followed.error();
  const RunOptions& options = *followed;
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& warning) {
    if (options.log) options.log(LogLevel::warning, warning);
    warnings.push_back(warning);
  };
  if (edited)
    warn(fmt::format(
        "{} was edited after the run was started: the run continues with the new values, and its bits are not those "
        "of a run with either recipe",
        folder->recipe().string()));
  return guarded([&]() -> Result<RunSummary> {
    auto session = reopen_session(*recipe, options, *folder);
    if (!session) return session.error();
    RunRecorder recorder(options, family_of(*recipe), &*folder);
    const bool begun = folder->has_checkpoint();
    if (begun) {
      auto restored = restore(**session, *folder, OtherData::refuse, options);
      if (!restored) return restored.error();
      recorder.resume_at(restored->log_lines, restored->short_log);
      warnings.insert(warnings.end(), restored->warnings.begin(), restored->warnings.end());
    }
    if (options.comm) {
      if (auto sent = send_checkpoint(*options.comm, *recipe, *folder); !sent) return sent.error();
      meet_ranks(*recipe, **session, options);
    }
    if (!begun) {  // stopped before its first checkpoint
      if (auto log = read_run_log(folder->log()); log && !log->lines.empty())
        warn(fmt::format("{} has no checkpoint: the run and its log start again", folder->path().string()));
      if (auto kept = keep_first_lines(folder->log(), 0); !kept) return kept.error();
      if ((*session)->start() == TrainEnd::stopped) return interrupted(**session, &*folder, recorder);
    }
    auto summary = run_session(*recipe, **session, options, recorder, &*folder);
    if (summary && summary->result)
      summary->result->warnings.insert(summary->result->warnings.end(), warnings.begin(), warnings.end());
    return summary;
  });
}

}  // namespace gradloom::app
