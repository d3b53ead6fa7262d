#include "gradloom/app/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "gradloom/app/families/families.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/run/advice.h"
#include "gradloom/app/run/open.h"
#include "gradloom/app/run/recorder.h"
#include "gradloom/app/run/report.h"
#include "gradloom/app/run/training.h"
#include "gradloom/app/settings.h"
#include "gradloom/comm/comm.h"
#include "gradloom/data/fingerprint.h"
#include "gradloom/exec/arithmetic_names.h"
#include "gradloom/io/file.h"

namespace gradloom::app {
namespace {

using nlohmann::json;

// For what one rank does without the others.
RunOptions alone(RunOptions options) {
  options.comm = nullptr;
  return options;
}

bool any_rank_stops(const RunOptions& options) {
  const bool own = options.stop && *options.stop;
  return options.comm ? !options.comm->all_of(!own) : own;
}

// What a rank other than 0 listens for: where rank 0 measures, all do.
class Follower final : public SessionListener {
 public:
  void stage_finished(Session& session) override { session.metrics(); }
};

// What a family does behind training, by all ranks that have trained together; rank 0 may come late to it.
Result<json> finish_run(const AppFamily& family, Session& session, const RunOptions& options, const RunFolder* folder) {
  const bool shared = options.comm && session.shares_steps();
  if (shared) options.comm->barrier(Patience::unlimited);
  return family.finish(session, shared ? options : alone(options), folder);
}

RunSummary summary_so_far(const Session& session, const RunFolder* folder, const RunRecorder& recorder) {
  RunSummary summary;
  if (folder) summary.run = folder->path().string();
  summary.epochs = session.position().run_epoch;
  summary.seconds = recorder.seconds();
  if (recorder.comm() && session.shares_steps()) {
    summary.ranks = recorder.comm()->size();
    summary.idle_ranks = session.idle_ranks();
    summary.bytes_sent = recorder.comm()->counters().bytes;
  }
  return summary;
}

// The ends of all stages.
std::vector<json> stages_of(const std::vector<json>& lines) {
  std::vector<json> stages;
  for (const json& line : lines)
    if (line.value("event", "") == "stage") {
      json stage = line.value("metrics", json::object());
      stage["note"] = line.value("note", "");
      stages.push_back(std::move(stage));
    }
  return stages;
}

// Accuracies after each epoch that the log has, and the epoch that did best on validation data.
void add_curve(const std::vector<json>& lines, RunResult& result) {
  auto& [epochs, validation, test] = result.curve.emplace();
  for (const json& line : lines) {
    const json v = line.value("validation_accuracy", json()), t = line.value("test_accuracy", json());
    if (!v.is_number() && !t.is_number()) continue;
    epochs.push_back(line.value("run_epoch", std::uint64_t{0}));
    if (v.is_number()) validation.push_back(v.get<double>());
    if (t.is_number()) test.push_back(t.get<double>());
  }
  if (validation.size() != epochs.size() || test.size() != epochs.size() || epochs.empty()) return;
  const auto best = std::max_element(validation.begin(), validation.end());
  const auto at = static_cast<std::size_t>(best - validation.begin());
  result.chosen = {epochs[at], *best, test[at]};
}

RunResult describe_result(const Config& recipe, Session& session, Metrics metrics, const std::vector<json>& lines) {
  RunResult result;
  result.metrics = std::move(metrics);
  result.stages = stages_of(lines);
  result.parameters = session.parameter_count();
  result.device = session.device();
  result.arithmetic = name_of(kArithmetics, session.arithmetic());
  result.warnings = recipe_warnings(recipe);
  for (std::string& warning : session.warnings()) result.warnings.push_back(std::move(warning));
  for (std::string& warning : metric_warnings(result.metrics, session.options().precision))
    result.warnings.push_back(std::move(warning));
  if (std::string overflow = validation_overflow(result.metrics, lines); !overflow.empty())
    result.warnings.push_back(std::move(overflow));
  if (std::string nothing = learned_nothing(result.metrics, session.options().train.loss_kind.value_or(LossKind::mse),
                                            session.largest_class(), lines);
      !nothing.empty())
    result.warnings.push_back(std::move(nothing));
  else if (const auto cure = family_of(recipe).overfit_cure)
    for (std::string& advice : training_advice(result.metrics, lines, cure(session, result.metrics)))
      result.warnings.push_back(std::move(advice));
  if (std::string vain = stages_in_vain(lines); !vain.empty()) result.warnings.push_back(std::move(vain));
  result.rows_outside = session.rows_outside();
  result.found = session.conclude(result.metrics);
  if (session.logs_accuracy()) add_curve(lines, result);
  return result;
}

// The model as it is now, and its circuit: what predictions and exports need. Returns why there is no model file, or
// an empty text.
Result<std::string> leave_model(Session& session, const AppFamily& family, const RunFolder& folder) {
  if (const auto circuit = session.hard_circuit())
    if (auto r = write_file_atomic(folder.file("circuit.json"), circuit::to_json(*circuit)); !r) return r.error();
  try {
    if (auto r = session.save_model(folder.model(), family.options(session)); !r) return r.error();
  } catch (const Exception& e) {
    return fmt::format("there is no model file: {}", e.what());
  }
  return std::string();
}

// What there is to see of a run that was stopped: curves and metrics, without what a family finds out in the end.
Result<void> report_so_far(const Config& recipe, Session& session, const RunRecorder& recorder, const RunFolder& folder,
                           const std::vector<json>& lines) {
  RunSummary summary = summary_so_far(session, &folder, recorder);
  summary.result.emplace();
  summary.result->metrics = session.metrics();
  summary.result->stages = stages_of(lines);
  summary.result->parameters = session.parameter_count();
  summary.result->device = session.device();
  summary.result->warnings.push_back(
      fmt::format("the run is not finished: `gradloom resume {}` continues it", folder.path().string()));
  const Report report =
      run_report(session, family_of(recipe).headlines, recipe.to_toml(), summary, folder.path(), lines);
  return write_file_atomic(folder.report(), report_html(report));
}

}  // namespace

const AppFamily& family_of(const Config& recipe) { return find_family(recipe.string("family")); }

Result<std::unique_ptr<Session>> open_session(const Config& recipe, const RunOptions& options) {
  const ReadingData reading(options);
  auto session = family_of(recipe).open(recipe, options.data_root, options);
  if (!session) return with_places(session.error(), recipe, options.data_root);
  return session;
}

bool follows(const RunOptions& options) { return options.comm && options.comm->rank() > 0; }

void meet_ranks(const Config& recipe, Session& session, const RunOptions& options) {
  if (!options.comm) return;
  Comm& comm = *options.comm;
  comm.barrier(Patience::unlimited);  // rank 0 may still be busy with what follows another run of a series
  const Session::Fingerprints data = session.data_fingerprints();
  require_same(comm, {{"another recipe", fingerprint_of_text(recipe.to_toml())},
                      {"other training data", data.train},
                      {"other validation data", data.validation},
                      {"other test data", data.test},
                      {"another arithmetic", static_cast<std::uint64_t>(session.arithmetic())}});
  if (session.shares_steps()) return;
  session.leave_ranks();
  if (options.log)
    options.log(LogLevel::info,
                fmt::format("rank 0 trains alone, the other ranks are idle: {}", session.why_not_shared()));
}

RunSummary train_share(const AppFamily& family, Session& session, const RunOptions& options) {
  RunSummary summary;
  if (!session.shares_steps()) return summary;
  Follower follower;
  // As run_session() does.
  const bool stopped = gradloom::train(session, follower) == TrainEnd::stopped || session.stop_requested();
  if (stopped)
    summary.interrupted = true;
  else
    session.metrics();
  session.leave_ranks();
  if (!stopped && family.finish) finish_run(family, session, options, nullptr).or_throw();
  summary.epochs = session.position().run_epoch;
  summary.ranks = options.comm->size();
  return summary;
}

RunSummary interrupted(const Session& session, const RunFolder* folder, const RunRecorder& recorder) {
  RunSummary summary = summary_so_far(session, folder, recorder);
  summary.interrupted = true;
  return summary;
}

Result<RunSummary> run_session(const Config& recipe, Session& session, const RunOptions& options, RunRecorder& recorder,
                               const RunFolder* folder) {
  const AppFamily& family = family_of(recipe);
  if (auto r = recorder.open(); !r) return r.error();
  recorder.begin(session);
  const TrainPosition& at = session.position();
  bool was_finished =
      at.stage + 1 == session.stages() && at.stage_closed && folder && std::filesystem::exists(folder->report());
  // What follows training takes a while for some families; whoever resumes a stopped run gets it.
  const bool stopped = gradloom::train(session, recorder) == TrainEnd::stopped || session.stop_requested();
  std::optional<Metrics> metrics;
  if (!stopped) metrics = session.metrics();
  session.leave_ranks();
  std::string no_model;
  if (folder) {
    folder->check_own().or_throw();
    auto left = leave_model(session, family, *folder);
    if (!left) return left.error();
    no_model = std::move(*left);
  }
  auto lines = recorder.lines();
  if (!lines) return lines.error();
  const auto end_here = [&]() -> Result<RunSummary> {
    if (folder && at.run_epoch > 0)
      if (auto r = report_so_far(recipe, session, recorder, *folder, *lines); !r) return r.error();
    return interrupted(session, folder, recorder);
  };
  if (stopped) return end_here();
  RunResult result = describe_result(recipe, session, std::move(*metrics), *lines);
  if (was_finished) result.finished_before = true;
  if (!no_model.empty()) result.warnings.push_back(std::move(no_model));
  if (folder) result.report = folder->report().string();
  if (family.finish) {
    const bool had = folder && std::filesystem::exists(folder->file(family.finish_file));
    auto more = finish_run(family, session, options, folder);
    if (!more) return more.error();
    if (more->is_object() && more->empty()) return end_here();
    if (!more->is_null() && !had) {  // a new run, or one that was stopped in there
      result.finished_before.reset();
      was_finished = false;
    }
    if (!more->is_null()) result.found[std::string(family.finish_key)] = std::move(*more);
  }
  if (family.summary_rows) result.rows = family.summary_rows(result.found);
  if (auto phases = session.phases(); !phases.empty()) result.phases = std::move(phases);
  RunSummary summary = summary_so_far(session, folder, recorder);
  summary.result = std::move(result);
  // A report of the whole run is better than one of what is left of its log.
  if (!folder || (was_finished && recorder.log_is_short() && std::filesystem::exists(folder->report()))) return summary;
  Report report = run_report(session, family.headlines, recipe.to_toml(), summary, folder->path(), *lines);
  family.describe(session, *summary.result, report);
  add_phases(*summary.result, report);
  if (auto r = write_file_atomic(folder->report(), report_html(report)); !r) return r.error();
  return summary;
}

json to_json(const RunSummary& summary) {
  json object = to_json<RunSummary>(summary);
  if (!summary.result) return object;
  object.update(to_json(*summary.result));
  object.update(to_json(summary.result->metrics));
  object.update(summary.result->found);
  return object;
}

namespace {

// The recipe with what it leaves to the data, and how that was found.
Result<SettledRecipe> settled(const Config& recipe, const RunOptions& options) {
  const AppFamily& family = family_of(recipe);
  if (!family.settle) return SettledRecipe{recipe, {}};
  auto found = family.settle(recipe, options.data_root, options);
  if (!found) return with_places(found.error(), recipe, options.data_root);
  return *found ? std::move(**found) : SettledRecipe{recipe, {}};
}

// With the command that continues a run that is in the folder already.
Error with_resume(Error error, const std::filesystem::path& folder) {
  std::error_code ignored;
  if (error.code == ErrorCode::invalid_input && std::filesystem::exists(folder / "recipe.toml", ignored))
    error.message += fmt::format(": `gradloom resume {}`", folder.string());
  return error;
}

}  // namespace

Result<RunSummary> train(const Config& asked, const std::filesystem::path& path, const RunOptions& options) {
  return guarded([&]() -> Result<RunSummary> {
    const auto begin = std::chrono::steady_clock::now();
    auto found = settled(asked, alone(options));
    if (!found) return found.error();
    // A search that was stopped has not seen all candidates; its choice would not be that of an undisturbed run.
    if (!found->found.is_null() && any_rank_stops(options)) return RunSummary{.interrupted = true};
    const double search = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const Config& recipe = found->recipe;
    auto session = open_session(recipe, options);
    if (!session) return session.error();
    // The folder comes after everything that can be wrong: a mistake in the recipe must not leave an empty run behind.
    (*session)->preflight();
    meet_ranks(recipe, **session, options);
    if (follows(options)) {
      if ((*session)->shares_steps() && (*session)->start() == TrainEnd::stopped)
        return RunSummary{.interrupted = true};
      return train_share(family_of(recipe), **session, options);
    }
    std::optional<RunFolder> folder;
    if (!path.empty()) {
      auto made = RunFolder::create(path);
      if (!made) return with_resume(made.error(), path);
      folder.emplace(std::move(*made));
      if (auto r = write_file_atomic(folder->recipe(), sealed_recipe(recipe)); !r) return r.error();
    }
    const RunFolder* kept = folder ? &*folder : nullptr;
    RunRecorder recorder(options, family_of(recipe), kept);
    if ((*session)->start() == TrainEnd::stopped) return interrupted(**session, kept, recorder);
    auto summary = run_session(recipe, **session, options, recorder, kept);
    if (summary && summary->result && !found->found.is_null()) summary->result->settled = found->found;
    if (summary) summary->seconds += search;
    return summary;
  });
}

Result<CheckReport> check(const Config& asked, const RunOptions& options, const CheckOptions& what) {
  return guarded([&]() -> Result<CheckReport> {
    Config recipe = asked;
    // The size of the batch is left to the data; gradients are checked with any.
    if (family_of(asked).settle && asked.string("model.size") == "auto" && !asked.was_set("train.batch"))
      recipe = parse_recipe(asked.to_toml(), "the recipe", std::vector<std::string>{"train.batch=0"}).or_throw();
    auto report = family_of(recipe).check(recipe, options.data_root, options, what);
    if (!report) return with_places(report.error(), recipe, options.data_root);
    return report;
  });
}

}  // namespace gradloom::app
