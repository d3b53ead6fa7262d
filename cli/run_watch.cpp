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
    return fmt::format("the last checkpoint is intact; `{}` continues from it on the cpu", resume_command(folder));
  if (exit_code(error.code) != kFailed) return {};
  return fmt::format("the last checkpoint is intact; `{}` continues from it", resume_command(folder));
}

}  // namespace

WatchedRun watch_run(const Output& out, const std::filesystem::path& folder, app::RunOptions options,
                     const std::function<Result<app::RunOutcome>(const app::RunOptions&)>& work) {
  const StopSignals signals;
  ProgressView view(stderr, out.quiet() ? Show::nothing : Show::progress);
  options.stop = &signals.requested();
  options.progress = [&](const app::Progress& p) { view.update(p); };
  options.log = [&](LogLevel level, const std::string& text) { view.message(level, text); };
  auto outcome = work(options);
  view.finish();
  if (!outcome) throw Failure(outcome.error(), advice(outcome.error(), folder));
  WatchedRun run;
  run.summary = std::move(outcome->summary);
  run.rows = std::move(outcome->rows);
  if (signals.requested()) run.stop_code = signals.exit_code();
  if (outcome->interrupted) {
    run.exit_code = signals.exit_code();
    run.summary["resume"] = resume_command(folder, options);
  }
  return run;
}

void print_run(const Output& out, const std::filesystem::path& folder, const WatchedRun& run) {
  const nlohmann::json& s = run.summary;
  const std::string spent =
      fmt::format("{}, {}", counted(s.value("epochs", std::uint64_t{0}), "epoch"), duration(s.value("seconds", 0.0)));
  if (run.interrupted()) {
    // Among several starts none is saved before the best is known.
    const bool began = s.value("epochs", std::uint64_t{0}) > 0;
    out.tell(fmt::format("Interrupted ({}). {}; go on with\n  {}\n", spent,
                         began ? "Nothing is lost" : "The first epoch was not finished",
                         s["resume"].get<std::string>()));
    return;
  }
  const bool has_goal = s.contains("success"), reached = s.value("success", true);
  const std::string goal = !has_goal ? "" : reached ? ", goal reached" : ", goal not reached";
  if (s.contains("finished_before"))
    out.print(fmt::format("{}{} ({}): nothing was left to train\n", out.paint(Paint::green, "Finished before"), goal,
                          counted(s.value("epochs", std::uint64_t{0}), "epoch")));
  else
    out.print(fmt::format("{}{} ({})\n", out.paint(Paint::green, "Done"), goal, spent));
  std::vector<std::pair<std::string, std::string>> rows;
  for (const char* part : {"test", "validation", "train"})
    if (s.contains(part) && s[part].is_object()) rows.emplace_back(part, metrics_text(s[part]));
  rows.insert(rows.end(), run.rows.begin(), run.rows.end());
  if (s.contains("parameters")) rows.emplace_back("parameters", s["parameters"].dump());
  if (s.contains("report")) rows.emplace_back("report", s["report"].get<std::string>());
  rows.emplace_back("evaluate", "gradloom eval " + shell_word(folder));
  if (s.contains("circuit"))
    rows.emplace_back("circuit",
                      fmt::format("gradloom export {} --format c --out circuit.c --verify", shell_word(folder)));
  if (s.contains("warnings"))
    for (const auto& warning : s["warnings"]) rows.emplace_back("warning", warning.get<std::string>());
  out.print_rows(rows);
  if (s.contains("phases")) print_phases(out, s["phases"]);
}

}  // namespace gradloom::cli
