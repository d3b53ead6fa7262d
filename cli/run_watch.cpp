#include "cli/run_watch.h"

#include <fmt/format.h>

#include "cli/phases.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/text.h"

namespace gradloom::cli {
namespace {

std::string resume_command(const std::filesystem::path& folder) { return "gradloom resume " + shell_word(folder); }

// On the device where the run was.
std::string resume_command(const std::filesystem::path& folder, const app::RunOptions& options) {
  if (!options.device) return resume_command(folder);
  const bool required = options.device_policy == app::DevicePolicy::required;
  return fmt::format("{} --device {}", resume_command(folder),
                     required ? std::to_string(options.device->info().number) : "auto");
}

// What can still be done after a failure, if anything.
std::string advice(const Error& error, const std::filesystem::path& folder) {
  std::error_code ignored;
  const bool saved = std::filesystem::exists(folder / "checkpoint" / "last.safetensors", ignored);
  if (!saved || error.code == ErrorCode::numeric) return {};
  if (error.code == ErrorCode::device_lost || error.code == ErrorCode::device_memory)
    return fmt::format("the last checkpoint is intact; `{}` continues from it on the CPU", resume_command(folder));
  if (exit_code(error.code) != kFailed) return {};
  return fmt::format("the last checkpoint is intact; `{}` continues from it", resume_command(folder));
}

// "grid 3, hidden [8], weight_decay 0.3: the best of 5 on 5 folds"
std::string settled_text(const nlohmann::json& settled) {
  const nlohmann::json& all = settled["candidates"];
  const auto folds = settled["folds"].get<std::size_t>();
  std::string size;
  for (const auto& [key, value] : all.at(settled["chosen"].get<std::size_t>()).items())
    if (key != "loss" && key != "error") size += fmt::format("{}{} {}", size.empty() ? "" : ", ", key, value.dump());
  return fmt::format("{}{}", size,
                     all.size() == 1 ? ""
                                     : fmt::format(": the best of {} on {}", all.size(),
                                                   folds > 0 ? counted(folds, "fold") : "validation rows"));
}

}  // namespace

WatchedRun watch_run(const Output& out, const std::filesystem::path& folder, app::RunOptions options,
                     const std::function<Result<app::RunSummary>(const app::RunOptions&)>& work) {
  const StopSignals signals;
  ProgressView view(stderr, out.quiet() ? Show::nothing : Show::progress);
  options.stop = &signals.requested();
  options.comm = out.comm();
  options.progress = [&](const app::Progress& p) { view.update(p); };
  options.log = [&](LogLevel level, const std::string& text) { view.message(level, text); };
  auto summary = work(options);
  view.finish();
  if (!summary) throw Failure(summary.error(), advice(summary.error(), folder));
  WatchedRun run;
  run.summary = std::move(*summary);
  const bool here = signals.requested();
  const bool stop = out.comm() ? out.comm()->agree_to_stop(here) : here;
  if (stop) run.stop_code = signals.exit_code();
  if (run.summary.interrupted) {
    run.exit_code = signals.exit_code();
    if (run.summary.run) run.summary.resume = resume_command(folder, options);
  }
  return run;
}

void print_run(const Output& out, const std::filesystem::path& folder, const WatchedRun& run) {
  const app::RunSummary& s = run.summary;
  const std::string spent = fmt::format("{}, {}", counted(s.epochs, "epoch"), duration(s.seconds));
  if (!s.result && !s.resume) {
    out.tell("Interrupted while the options were chosen. Nothing was written; run the same command to start again\n");
    return;
  }
  if (!s.result) {
    // Among several starts none is saved before the best is known.
    out.tell(fmt::format("Interrupted ({}). {}; continue with\n  {}\n", spent,
                         s.epochs > 0 ? "Nothing is lost" : "The first epoch was not finished", *s.resume));
    return;
  }
  const app::RunResult& r = *s.result;
  const bool has_goal = r.found.contains("success"), reached = r.found.value("success", true);
  const std::string goal = !has_goal ? "" : reached ? ", goal reached" : ", goal not reached";
  if (r.finished_before)
    out.print(fmt::format("{}{} ({}): there was nothing left to train\n", out.paint(Paint::green, "Finished before"),
                          goal, counted(s.epochs, "epoch")));
  else
    out.print(fmt::format("{}{} ({})\n", out.paint(Paint::green, "Done"), goal, spent));
  std::vector<app::TextRow> rows = metrics_rows(r.metrics);
  for (app::TextRow& row : outside_rows(r.rows_outside)) rows.push_back(std::move(row));
  rows.insert(rows.end(), r.rows.begin(), r.rows.end());
  if (r.settled) rows.emplace_back("size", settled_text(*r.settled));
  rows.emplace_back("parameters", std::to_string(r.parameters));
  rows.emplace_back("arithmetic", fmt::format("{}, on {}", r.arithmetic, r.device));
  if (r.report) rows.emplace_back("report", *r.report);
  rows.emplace_back("evaluate", "gradloom eval " + shell_word(folder));
  if (r.found.contains("circuit"))
    rows.emplace_back("circuit",
                      fmt::format("gradloom export {} --format c --out circuit.c --verify", shell_word(folder)));
  for (const std::string& warning : r.warnings) rows.emplace_back("warning", warning);
  out.print_rows(rows);
  print_phases(out, r.phases);
}

}  // namespace gradloom::cli
