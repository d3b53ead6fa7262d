#include "cli/series.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "cli/ranks.h"
#include "cli/seeds.h"
#include "cli/signals.h"
#include "cli/text.h"
#include "gradloom/app/sweep/sweep.h"

namespace gradloom::cli {

namespace fs = std::filesystem;

bool is_free(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return true;
  return fs::is_directory(path, error) && fs::is_empty(path, error);
}

RecipeFlags with_seed(RecipeFlags flags, std::int64_t seed) {
  flags.overrides.push_back(fmt::format("seed={}", seed));
  return flags;
}

WatchedRun train_once(const Output& out, const Config& recipe, const fs::path& folder, const app::RunOptions& options) {
  return watch_run(out, folder, options, [&](const app::RunOptions& o) { return app::train(recipe, folder, o); });
}

namespace {

void print_seeds(const Output& out, const nlohmann::json& all, const fs::path& folder) {
  const std::size_t count = all["runs"].size(), failed = all["failed"].get<std::size_t>();
  const std::string verdict = failed > 0 ? out.paint(Paint::red, fmt::format("{} failed", failed))
                              : all["success_rate"] == 1.0
                                  ? out.paint(Paint::green, "all succeeded")
                                  : fmt::format("{:.0f} % reached the goal", 100 * all["success_rate"].get<double>());
  out.print(fmt::format("{} {}, {}\n", count, count == 1 ? "seed" : "seeds", verdict));
  std::vector<std::pair<std::string, std::string>> rows;
  if (!all["median"].empty()) {
    rows.emplace_back("median test", metrics_text(all["median"]));
    rows.emplace_back("worst test", metrics_text(all["worst"]));
  }
  rows.emplace_back("runs", folder.string());
  out.print_rows(rows);
}

// A series that was interrupted may go on in its folder: other seeds are not in the way.
void require_seed_folders(const fs::path& folder, std::int64_t first, unsigned seeds) {
  if (is_free(folder)) return;
  std::error_code ignored;
  bool free = fs::is_directory(folder, ignored);
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    free = free && entry.path().filename().string().starts_with("seed-");
  for (unsigned i = 0; i < seeds; ++i) free = free && is_free(folder / fmt::format("seed-{}", first + i));
  if (!free) throw_invalid(fmt::format("the folder '{}' is not empty; choose another name", folder.string()));
}

// One run of a series. A mistake in the recipe or a full disk would fail every seed alike, so it ends the series; a run
// that diverges does not.
struct SeedRun {
  nlohmann::json object;
  int code = kDone;  // that of the signal that came
};

SeedRun train_seed(const Output& out, const TrainFlags& flags, std::int64_t seed, const fs::path& folder,
                   const app::RunOptions& options) {
  const Config recipe = load_recipe(with_seed(flags.recipe, seed));
  const fs::path part = folder / fmt::format("seed-{}", seed);
  const auto note = [&](const std::string& text) {
    if (!out.quiet()) out.tell(fmt::format("seed {}: {}\n", seed, text));
  };
  SeedRun result;
  try {
    const WatchedRun run = train_once(out, recipe, part, options);
    result.object = to_json(run.summary);
    result.code = run.interrupted() ? run.exit_code : run.stop_code;
    if (run.interrupted())
      print_run(out, part, run);
    else
      note(fmt::format("{}   ({})", metrics_text(result.object.value("test", nlohmann::json())),
                       duration(result.object.value("seconds", 0.0))));
  } catch (const Exception& e) {
    if (e.code() != ErrorCode::numeric) throw;
    result.object = {{"run", part.string()}, {"error", {{"code", code_name(e.code())}, {"message", e.what()}}}};
    note(fmt::format("failed: {}", e.what()));
  }
  result.object["seed"] = seed;
  return result;
}

// What the other ranks have trained, of their own seeds, joins what rank 0 has; in the order of seeds.
void collect_seeds(const Output& out, std::vector<nlohmann::json>& runs, int& code) {
  const std::size_t own = runs.size();
  const auto all = out.comm()->gather(nlohmann::json{{"runs", runs}, {"code", code}}.dump(), Patience::unlimited);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const nlohmann::json theirs = nlohmann::json::parse(all[rank]);
    for (const nlohmann::json& run : theirs["runs"]) runs.push_back(run);
    if (code == kDone) code = theirs["code"];
  }
  for (std::size_t i = own; i < runs.size() && !out.quiet(); ++i) {
    const auto seed = runs[i]["seed"].get<std::int64_t>();
    if (runs[i].value("interrupted", false))
      out.tell(fmt::format("seed {}: interrupted; continue with {}\n", seed, runs[i].value("resume", "")));
    else if (runs[i].contains("error"))
      out.tell(fmt::format("seed {}: failed: {}\n", seed, runs[i]["error"].value("message", "")));
    else
      out.tell(fmt::format("seed {}: {}\n", seed, metrics_text(runs[i].value("test", nlohmann::json()))));
  }
  const auto before = [](const nlohmann::json& a, const nlohmann::json& b) { return a["seed"] < b["seed"]; };
  std::sort(runs.begin(), runs.end(), before);
}

// Where a series was interrupted.
void tell_left_seeds(const Output& out, const std::vector<nlohmann::json>& runs, std::int64_t first, unsigned seeds,
                     const fs::path& folder) {
  std::vector<std::int64_t> left;
  for (std::int64_t seed = first; seed < first + seeds; ++seed)
    if (std::none_of(runs.begin(), runs.end(), [&](const nlohmann::json& run) { return run["seed"] == seed; }))
      left.push_back(seed);
  if (left.empty()) return;
  if (left.front() == first + seeds - static_cast<std::int64_t>(left.size()))
    out.tell(fmt::format("{} not started; the same command with --seed {} --seeds {} --out {} trains them\n",
                         left.size() == 1 ? "1 seed was" : fmt::format("{} seeds were", left.size()), left.front(),
                         left.size(), shell_word(folder)));
  else
    out.tell(fmt::format("not started: seeds {}; the same command with --seed S --seeds 1 --out {} trains one\n",
                         fmt::join(left, ", "), shell_word(folder)));
}

}  // namespace

int train_seeds(const Output& out, const TrainFlags& flags, std::int64_t first, const fs::path& folder,
                const app::RunOptions& options) {
  const unsigned seeds = *flags.seeds;
  if (out.writes()) require_seed_folders(folder, first, seeds);
  const bool deal = out.comm() && seeds >= out.comm()->size() && all_see(*out.comm(), folder);
  const Output here = deal ? out.alone() : out;
  std::vector<nlohmann::json> runs;
  int code = kDone;
  for (unsigned i = deal ? out.comm()->rank() : 0; i < seeds && code == kDone; i += deal ? out.comm()->size() : 1) {
    SeedRun run = train_seed(here, flags, first + i, folder, options);
    code = run.code;
    runs.push_back(std::move(run.object));
  }
  if (deal) collect_seeds(out, runs, code);
  if (!out.writes()) return code;
  nlohmann::json all = summarise_seeds(runs);
  all["run"] = folder.string();
  if (deal) all["ranks"] = out.comm()->size();
  if (code != kDone) {
    all["interrupted"] = true;
    tell_left_seeds(out, runs, first, seeds, folder);
  } else {
    print_seeds(out, all, folder);
  }
  out.result(all);
  return code != kDone ? code : all["failed"] == 0 ? kDone : kFailed;
}

namespace {

// Runs side by side have a thread each, unless the caller says how many.
unsigned jobs_of(const Output& out, unsigned& threads) {
  const unsigned cores = out.comm() ? threads_of_this_rank() : std::max(1u, std::thread::hardware_concurrency());
  if (threads == 0) threads = 1;
  return std::max(1u, cores / threads);
}

void print_table(const Output& out, const app::SweepTable& table) {
  std::vector<std::size_t> widths;
  for (const std::string& column : table.columns) widths.push_back(column.size());
  for (const auto& row : table.rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t c = 0; c < cells.size(); ++c)
      text += fmt::format("{}{:>{}}", c == 0 ? "" : "  ", cells[c], widths[c]);
    return text + '\n';
  };
  out.print(out.paint(Paint::bold, line(table.columns)));
  for (const auto& row : table.rows) out.print(line(row));
}

nlohmann::json error_json(const std::optional<Error>& error) {
  if (!error) return nullptr;
  return {{"number", error->code}, {"message", error->message}};
}

// The runs of other ranks join those of rank 0. Returns whether any rank was told to stop.
bool collect_sweep(Comm& comm, std::vector<app::SweepRun>& runs, bool stopped) {
  nlohmann::json own = nlohmann::json::array();
  for (std::size_t i = comm.rank(); i < runs.size(); i += comm.size())
    own.push_back({{"begun", runs[i].begun}, {"summary", runs[i].summary}, {"error", error_json(runs[i].error)}});
  const auto all = comm.gather(nlohmann::json{{"runs", own}, {"stopped", stopped}}.dump(), Patience::unlimited);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const nlohmann::json theirs = nlohmann::json::parse(all[rank]);
    stopped = stopped || theirs["stopped"].get<bool>();
    for (std::size_t i = 0; i < theirs["runs"].size(); ++i) {
      app::SweepRun& run = runs[rank + i * comm.size()];
      const nlohmann::json& ended = theirs["runs"][i];
      run.begun = ended["begun"], run.summary = ended["summary"];
      if (ended["error"].is_object())
        run.error = Error{ended["error"]["number"].get<ErrorCode>(), ended["error"]["message"]};
    }
  }
  return stopped;
}

std::string name_of_run(const app::SweepRun& run) { return fmt::format("{}", fmt::join(run.overrides, " ")); }

// A mistake that all runs share is that of the command. Runs that diverge are a result.
void refuse_failed_sweep(const std::vector<app::SweepRun>& runs, const app::SweepTable& table) {
  if (table.failures.size() < runs.size()) return;
  for (const app::SweepRun& run : runs)
    if (run.error->code != ErrorCode::numeric) throw Exception(*run.error);
}

// What ended the sweep before its last run, if anything did.
void throw_end_of_sweep(const std::vector<app::SweepRun>& runs) {
  for (const app::SweepRun& run : runs)
    if (run.error && !app::is_of_one_run(run.error->code))
      throw Exception(run.error->code, fmt::format("{}: {}", name_of_run(run), run.error->message));
}

nlohmann::json sweep_json(const std::vector<app::SweepRun>& runs, const app::SweepTable& table) {
  nlohmann::json all = {{"runs", nlohmann::json::array()}, {"failed", table.failures.size()}};
  for (const app::SweepRun& run : runs) {
    if (!run.begun) continue;
    nlohmann::json object = run.summary;
    if (run.error)
      object = {{"run", run.folder.string()},
                {"error", {{"code", code_name(run.error->code)}, {"message", run.error->message}}}};
    object["seed"] = run.seed;
    object["set"] = std::vector<std::string>(run.overrides.begin(), run.overrides.end() - 1);
    all["runs"].push_back(std::move(object));
  }
  return all;
}

// Where a sweep was interrupted.
void tell_left_runs(const Output& out, const std::vector<app::SweepRun>& runs) {
  out.tell("Interrupted.\n");
  for (const app::SweepRun& run : runs)
    if (run.interrupted() && run.summary.contains("run"))
      out.tell(fmt::format("  continue with gradloom resume {}\n", shell_word(run.folder)));
    else if (!run.begun || run.interrupted())
      out.tell(fmt::format("  not started: {}\n", name_of_run(run)));
}

}  // namespace

int train_sweep(const Output& out, const TrainFlags& flags, std::int64_t first, const fs::path& folder,
                app::RunOptions options) {
  app::SweepOptions sweep;
  for (const std::string& text : flags.sweeps) sweep.keys.push_back(app::parse_sweep(text).or_throw());
  if (out.writes() && !is_free(folder))
    throw_invalid(fmt::format("the folder '{}' is not empty; choose another name", folder.string()));
  sweep.first_seed = first;
  sweep.seeds = flags.seeds.value_or(1);
  sweep.folder = folder;
  sweep.jobs = jobs_of(out, options.exec.threads);
  auto runs = app::plan_sweep(sweep, [&](const std::vector<std::string>& overrides) {
                RecipeFlags recipe = flags.recipe;
                recipe.overrides.insert(recipe.overrides.end(), overrides.begin(), overrides.end());
                return load_recipe(recipe);
              }).or_throw();
  Comm* comm = out.comm() && all_see(*out.comm(), folder) ? out.comm() : nullptr;
  if (!comm && !out.writes()) return kDone;
  if (comm) sweep.part = comm->rank(), sweep.parts = comm->size();
  const StopSignals signals;
  options.stop = &signals.requested();
  std::size_t ended = 0;
  const auto tell = [&](const app::SweepRun& run) {
    ++ended;
    if (!out.quiet())
      out.tell(fmt::format(
          "{} of {}: {}: {}\n", ended, runs.size(), name_of_run(run),
          run.error ? "failed: " + run.error->message : metrics_text(run.summary.value("test", nlohmann::json()))));
  };
  app::run_sweep(runs, sweep, options, tell);
  const bool stopped = comm ? collect_sweep(*comm, runs, signals.requested()) : signals.requested().load();
  if (!out.writes()) return kDone;
  const app::SweepTable table = app::sweep_table(runs, sweep);
  refuse_failed_sweep(runs, table);
  nlohmann::json all = sweep_json(runs, table);
  all["run"] = folder.string();
  if (comm) all["ranks"] = comm->size();
  if (stopped) all["interrupted"] = true, tell_left_runs(out, runs);
  if (table.ended > 0 || !table.failures.empty()) {
    app::write_sweep(table, sweep, fmt::format("{}: sweep", flags.recipe.recipe)).or_throw();
    all["report"] = (folder / "report.html").string();
    print_table(out, table);
    out.print_rows({{"report", (folder / "report.html").string()}, {"table", (folder / "sweep.csv").string()}});
  }
  throw_end_of_sweep(runs);
  out.result(all);
  if (stopped) return signals.requested() ? signals.exit_code() : kFailed;
  return table.failures.empty() ? kDone : kFailed;
}

}  // namespace gradloom::cli
