#include "gradloom/app/run/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gradloom/app/families/families.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/run/checkpoints.h"
#include "gradloom/app/settings.h"
#include "gradloom/comm/comm.h"
#include "gradloom/data/fingerprint.h"
#include "gradloom/exec/arithmetic_names.h"
#include "gradloom/io/file.h"
#include "gradloom/io/run_log.h"
#include "gradloom/train/checkpoint.h"

namespace gradloom::app {

Result<Config> reopen_recipe(const RunFolder& folder, bool* edited) {
  const std::vector<std::string> none;
  auto text = read_file(folder.recipe(), kMaxRecipeBytes);
  if (!text) return text.error();
  if (edited) *edited = is_edited_recipe(*text);
  return parse_recipe(*text, folder.recipe().string(), none);
}

Result<void> refuse_overwriting_inputs(const std::filesystem::path& out, const std::filesystem::path& model,
                                       const std::filesystem::path& data_root,
                                       std::span<const std::filesystem::path> others) {
  if (out.empty()) return {};
  std::vector<std::filesystem::path> files = run_files(model);
  files.push_back(model);
  if (auto r = refuse_overwriting(out, files); !r) return r;
  if (auto r = refuse_overwriting(out, others, InFolders::contents); !r) return r;
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored)) return {};
  const std::vector<std::string> none;
  const auto text = read_file(model / "recipe.toml", kMaxRecipeBytes);
  if (!text) return {};
  const auto recipe = parse_recipe(*text, (model / "recipe.toml").string(), none);
  return recipe ? refuse_overwriting(out, data_paths(*recipe, data_root), InFolders::contents) : Result<void>();
}

Result<std::unique_ptr<Session>> reopen_session(const Config& recipe, const RunOptions& options,
                                                const RunFolder& folder) {
  const ReadingData reading(options);
  auto session = find_family(recipe.string("family")).open(recipe, options.data_root, options);
  if (session || session.error().code != ErrorCode::not_found) return session;
  Error error = session.error();
  std::error_code unreadable;
  error.message += fmt::format(
      ", looked for from {}{}; {} has the path of its training data relative to the folder that it was trained in: run "
      "this command there, or set GRADLOOM_DATA to that folder{}",
      std::filesystem::current_path(unreadable).string(),
      options.data_root == "." ? "" : fmt::format(" and {}", options.data_root.string()), folder.path().string(),
      std::filesystem::exists(folder.model(), unreadable)
          ? fmt::format(" (`gradloom predict {} --data FILE --out FILE` needs no training data)",
                        folder.path().string())
          : "");
  return error;
}

Result<RunOptions> follow_checkpoint(const RunFolder& folder, RunOptions options, OtherData other) {
  const auto saved = read_checkpoint(folder, {});
  if (!saved) return options;
  const auto head = checkpoint_head(saved->file, saved->place);
  if (!head || !head->notes.arithmetic) return options;
  const Arithmetic its = *head->notes.arithmetic;
  if (options.arithmetic && *options.arithmetic != its) {
    if (other == OtherData::tell) return options;
    return Error{
        ErrorCode::invalid_input,
        fmt::format("{} was trained in {} arithmetic; {} arithmetic would not give equal bits; leave --arithmetic out",
                    folder.path().string(), name_of(kArithmetics, its), name_of(kArithmetics, *options.arithmetic))};
  }
  if (options.device && options.device->info().arithmetic != its) {
    const std::string difference = fmt::format(
        "{} was trained in {} arithmetic, and {} was opened for {}", folder.path().string(), name_of(kArithmetics, its),
        options.device->info().name, name_of(kArithmetics, options.device->info().arithmetic));
    if (options.device_policy == DevicePolicy::required && other == OtherData::refuse)
      return Error{ErrorCode::unsuitable_device,
                   difference + "; set --arithmetic to that of the run, or continue on the CPU"};
    if (options.device_policy == DevicePolicy::preferred) {
      options.device = nullptr;
      if (options.log) options.log(LogLevel::info, "running on the CPU: " + difference);
    }
  }
  if (available(its)) {
    options.exec.variant.arithmetic = its;
  } else if (other == OtherData::refuse) {
    return Error{ErrorCode::unsupported,
                 fmt::format("{} was trained in {} arithmetic, which this processor does not have; continue it on a "
                             "processor with fused multiply-add (FMA)",
                             folder.path().string(), name_of(kArithmetics, its))};
  }
  return options;
}

Result<Restored> restore(Session& session, const RunFolder& folder, OtherData other, const RunOptions& options) {
  auto saved = read_checkpoint(folder, options.log);
  if (!saved) return saved.error();
  std::vector<std::string> warnings;
  if (!saved->warning.empty()) warnings.push_back(saved->warning);
  const auto warn = [&](const std::string& warning) {
    if (options.log) options.log(LogLevel::warning, warning);
    warnings.push_back(warning);
  };
  auto found = session.restore(saved->file, saved->place);
  if (!found) return found.error();
  if (other == OtherData::refuse && !found->old_contract && options.restart_optimizer)
    return Error{
        ErrorCode::invalid_input,
        fmt::format("{0} was trained under this version's numerical contract: `gradloom resume {0}` continues it "
                    "with its optimizer; --restart-optimizer is for runs of an earlier contract",
                    folder.path().string())};
  if (other == OtherData::refuse && found->old_contract) {
    if (!options.restart_optimizer)
      return Error{ErrorCode::unsupported,
                   fmt::format("{} was trained under numerical contract 1, whose bits this version does not have; "
                               "`gradloom resume --restart-optimizer` trains on from its parameters, and version 0.1 "
                               "continues the run itself",
                               folder.path().string())};
    session.restart_optimizer();
    warn("the checkpoint does not say which training data the run had; those found now are used");
  }
  if (other == OtherData::refuse && saved->last_is_damaged)
    if (auto r = folder.set_last_checkpoint_aside(); !r) return r.error();
  Restored restored{found->log_lines, false, found->data_changed, {}};
  if (other == OtherData::tell) {
    restored.warnings = std::move(warnings);
    return restored;
  }
  if (restored.data_changed)
    return Error{
        ErrorCode::invalid_input,
        fmt::format("the training data are not those that {} was trained on: a file has changed, or another file "
                    "of the same name was found from this folder; put the old data back, or start a new run",
                    folder.path().string())};
  auto lines = read_run_log(folder.log());
  if (!lines && lines.error().code != ErrorCode::not_found) return lines.error();
  const std::uint64_t present = lines ? lines->lines.size() : 0;
  restored.short_log = present < restored.log_lines;
  if (restored.short_log)
    warn(fmt::format("{} has lost lines; the curves of the report will be incomplete", folder.log().string()));
  restored.log_lines = std::min(present, restored.log_lines);
  restored.warnings = std::move(warnings);
  return restored;
}

Result<void> require_checkpoint(const RunFolder& folder) {
  if (folder.has_checkpoint()) return {};
  return Error{ErrorCode::not_found,
               folder.path().string() + " has no checkpoint yet; `gradloom resume` continues the run"};
}

Result<OpenedRun> open_run(const RunFolder& folder, const RunOptions& given) {
  if (auto r = require_checkpoint(folder); !r) return r.error();
  auto recipe = reopen_recipe(folder);
  if (!recipe) return recipe.error();
  const RunOptions options = follow_checkpoint(folder, given, OtherData::tell).or_throw();
  auto session = reopen_session(*recipe, options, folder);
  if (!session) return session.error();
  RunOptions unlogged = options;
  unlogged.log = {};
  auto restored = restore(**session, folder, OtherData::tell, unlogged);
  if (!restored) return restored.error();
  OpenedRun opened{std::move(*recipe), std::move(*session), std::move(restored->warnings)};
  if (restored->data_changed) opened.warnings.emplace_back("the training data have changed since this run was trained");
  return opened;
}

namespace {

// Of the newest checkpoint; 0 where none can be read.
std::uint64_t epochs_of_checkpoint(const RunFolder& folder) {
  const auto saved = read_checkpoint(folder, {});
  if (!saved) return 0;
  const auto head = checkpoint_head(saved->file, saved->place);
  return head ? head->position.run_epoch : 0;
}

Result<OpenedModel> open_last_state(const RunFolder& folder, const RunOptions& options) {
  auto run = open_run(folder, options);
  if (!run) return run.error();
  const TrainPosition& at = run->session->position();
  const bool finished = at.stage + 1 == run->session->stages() && at.stage_closed;
  return OpenedModel{std::move(run->session), at.run_epoch, finished, std::move(run->warnings)};
}

}  // namespace

Result<OpenedModel> open_model_or_run(const std::filesystem::path& model, const RunOptions& options, PartOfRun part) {
  const auto open_file = [&](const FilePlace& file) -> Result<OpenedModel> {
    ModelHead head;
    auto session = open_model(file, options, &head);
    if (!session) return session.error();
    return OpenedModel{std::move(*session), head.epochs, head.finished, {}};
  };
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored)) return open_file(model);
  auto folder = RunFolder::open(model, FolderAccess::read);
  if (!folder) return folder.error();
  if (part == PartOfRun::checkpoint || !std::filesystem::exists(folder->model(), ignored))
    return open_last_state(*folder, options);
  auto opened = open_file(folder->model());
  if (!opened) return opened;
  // The file is written when training stops; a run that went on and was killed has a newer checkpoint.
  const std::uint64_t newest = epochs_of_checkpoint(*folder);
  if (newest <= opened->epochs) return opened;
  Error why{ErrorCode::unsupported, "not on several ranks"};
  if (!options.comm) {
    auto last = open_last_state(*folder, options);
    if (last) return last;
    why = last.error();
  }
  opened->warnings.push_back(fmt::format(
      "{} is used, of {}; the checkpoint is newer, of {}, but cannot be used here ({}); `gradloom resume {}` goes on "
      "and writes a newer model file",
      folder->model().string(), counted(opened->epochs, "epoch"), counted(newest, "epoch"), why.message,
      folder->path().string()));
  return opened;
}

std::optional<RunOptions> options_of_rank(RunOptions options, std::span<const std::filesystem::path> files) {
  if (!options.comm) return options;
  Comm& comm = *options.comm;
  std::error_code ignored;
  bool sees = true;
  for (const auto& file : files) sees = sees && std::filesystem::exists(file, ignored);
  if (!comm.all_of(sees)) {
    options.comm = nullptr;
    return comm.rank() == 0 ? std::optional(std::move(options)) : std::nullopt;
  }
  Fingerprint f;
  for (const auto& file : files)
    if (std::filesystem::is_regular_file(file, ignored))
      f.take(read_file(file, std::numeric_limits<std::size_t>::max()).or_throw());
  require_same(comm, {{"another model or other data", f.value()}});
  return options;
}

}  // namespace gradloom::app
