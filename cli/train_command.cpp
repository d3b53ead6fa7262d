#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <limits>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/run_watch.h"
#include "cli/seeds.h"
#include "cli/signals.h"
#include "cli/text.h"
#include "gradloom/app/sweep/sweep.h"
#include "gradloom/io/file.h"

namespace gradloom::cli {
namespace {

namespace fs = std::filesystem;

struct TrainFlags {
  RecipeFlags recipe;
  ExecFlags exec;
  std::string out;
  std::optional<std::int64_t> seed;
  std::optional<unsigned> seeds;
  std::vector<std::string> sweeps;
  bool profile = false;
};

bool is_free(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return true;
  return fs::is_directory(path, error) && fs::is_empty(path, error);
}

constexpr std::int64_t kLargestSeed = std::numeric_limits<std::int64_t>::max();

// The folder of a run that names none: runs/NAME-SEED, or runs/NAME-SEED-2 and so on when that is taken. Whoever makes
// it has it: of several programs that start at once each gets its own. What is still empty at the end goes again, so
// that a mistake in a recipe leaves nothing behind.
class ClaimedFolder {
 public:
  ClaimedFolder(const std::string& recipe, std::int64_t seed) {
    const fs::path file(recipe);
    const std::string name = file.extension() == ".toml" ? file.stem().string() : file.filename().string();
    const fs::path base = fs::path("runs") / fmt::format("{}-{}", name, seed);
    path_ = base;
    for (int i = 1;;) {
      std::error_code error;
      made_runs_ = fs::create_directory("runs", error) || made_runs_;
      if (fs::create_directory(path_, error)) return;
      if (error == std::errc::no_such_file_or_directory) continue;  // another program has just removed runs, empty
      if (error && error != std::errc::file_exists)
        throw Exception(system_error("make the folder", path_, error.value()));
      path_ = fmt::format("{}-{}", base.string(), ++i);
    }
  }
  ClaimedFolder(const ClaimedFolder&) = delete;
  ClaimedFolder& operator=(const ClaimedFolder&) = delete;
  ~ClaimedFolder() {
    std::error_code ignored;
    fs::remove(path_, ignored);
    if (made_runs_) fs::remove("runs", ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool made_runs_ = false;
};

RecipeFlags with_seed(RecipeFlags flags, std::int64_t seed) {
  flags.overrides.push_back(fmt::format("seed={}", seed));
  return flags;
}

WatchedRun train_once(const Output& out, const Config& recipe, const fs::path& folder, const app::RunOptions& options) {
  return watch_run(out, folder, options, [&](const app::RunOptions& o) { return app::train(recipe, folder, o); });
}

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
  if (!free)
    throw Exception(ErrorCode::invalid_input,
                    fmt::format("the folder '{}' is not empty; choose another name", folder.string()));
}

// A mistake in the recipe or a full disk would fail every seed alike, so it ends the series; a run that diverges does
// not.
int train_seeds(const Output& out, const TrainFlags& flags, std::int64_t first, const fs::path& folder,
                const app::RunOptions& options) {
  require_seed_folders(folder, first, *flags.seeds);
  std::vector<nlohmann::json> runs;
  int code = kDone;
  for (unsigned i = 0; i < *flags.seeds; ++i) {
    const std::int64_t seed = first + i;
    const Config recipe = load_recipe(with_seed(flags.recipe, seed));
    const fs::path part = folder / fmt::format("seed-{}", seed);
    const auto note = [&](const std::string& text) {
      if (!out.quiet()) out.tell(fmt::format("seed {}: {}\n", seed, text));
    };
    nlohmann::json object;
    try {
      const WatchedRun run = train_once(out, recipe, part, options);
      object = to_json(run.summary);
      code = run.interrupted() ? run.exit_code : run.stop_code;
      if (run.interrupted())
        print_run(out, part, run);
      else
        note(fmt::format("{}   ({})", metrics_text(object.value("test", nlohmann::json())),
                         duration(object.value("seconds", 0.0))));
    } catch (const Exception& e) {
      if (e.code() != ErrorCode::numeric) throw;
      object = {{"run", part.string()}, {"error", {{"code", code_name(e.code())}, {"message", e.what()}}}};
      note(fmt::format("failed: {}", e.what()));
    }
    object["seed"] = seed;
    runs.push_back(std::move(object));
    if (code != kDone) break;
  }
  nlohmann::json all = summarise_seeds(runs);
  all["run"] = folder.string();
  if (code != kDone) {
    all["interrupted"] = true;
    const auto left = *flags.seeds - static_cast<unsigned>(runs.size());
    if (left > 0)
      out.tell(fmt::format("{} not begun; the same command with --seed {} --seeds {} --out {} trains them\n",
                           left == 1 ? "1 seed was" : fmt::format("{} seeds were", left),
                           first + static_cast<std::int64_t>(runs.size()), left, shell_word(folder)));
  } else {
    print_seeds(out, all, folder);
  }
  out.result(all);
  return code != kDone ? code : all["failed"] == 0 ? kDone : kFailed;
}

// Runs side by side have a thread each, unless the caller says how many.
unsigned jobs_of(unsigned& threads) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
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

int train_sweep(const Output& out, const TrainFlags& flags, std::int64_t first, const fs::path& folder,
                app::RunOptions options) {
  app::SweepOptions sweep;
  for (const std::string& text : flags.sweeps) sweep.keys.push_back(app::parse_sweep(text).or_throw());
  sweep.first_seed = first;
  sweep.seeds = flags.seeds.value_or(1);
  sweep.folder = folder;
  sweep.jobs = jobs_of(options.exec.threads);
  if (!is_free(folder))
    throw Exception(ErrorCode::invalid_input,
                    fmt::format("the folder '{}' is not empty; choose another name", folder.string()));
  auto runs = app::plan_sweep(sweep, [&](const std::vector<std::string>& overrides) {
                RecipeFlags recipe = flags.recipe;
                recipe.overrides.insert(recipe.overrides.end(), overrides.begin(), overrides.end());
                return load_recipe(recipe);
              }).or_throw();
  const StopSignals signals;
  options.stop = &signals.requested();
  std::size_t ended = 0;
  const auto tell = [&](const app::SweepRun& run) {
    ++ended;
    const bool failed = run.summary.contains("error");
    if (!out.quiet())
      out.tell(fmt::format("{} of {}: {}: {}\n", ended, runs.size(), fmt::join(run.overrides, " "),
                           failed ? run.summary["error"]["message"].get<std::string>()
                                  : metrics_text(run.summary.value("test", nlohmann::json()))));
  };
  app::run_sweep(runs, sweep, options, tell).or_throw();
  const app::SweepTable table = app::sweep_table(runs, sweep);
  nlohmann::json all = {{"run", folder.string()}, {"runs", nlohmann::json::array()}};
  bool failed = false;
  for (const app::SweepRun& run : runs) {
    if (!run.begun) continue;
    nlohmann::json object = run.summary;
    object["seed"] = run.seed;
    object["set"] = std::vector<std::string>(run.overrides.begin(), run.overrides.end() - 1);
    failed = failed || object.contains("error");
    all["runs"].push_back(std::move(object));
  }
  if (signals.requested()) {
    all["interrupted"] = true;
    out.tell("Interrupted.\n");
    for (const app::SweepRun& run : runs)
      if (run.summary.value("interrupted", false) && run.summary.contains("run"))
        out.tell(fmt::format("  go on: gradloom resume {}\n", shell_word(run.folder)));
      else if (!run.begun || run.summary.value("interrupted", false))
        out.tell(fmt::format("  not begun: {}\n", fmt::join(run.overrides, " ")));
    out.result(all);
    return signals.exit_code();
  }
  app::write_sweep(table, sweep, fmt::format("{}: sweep", flags.recipe.recipe)).or_throw();
  all["report"] = (folder / "report.html").string();
  print_table(out, table);
  out.print_rows({{"report", (folder / "report.html").string()}, {"table", (folder / "sweep.csv").string()}});
  out.result(all);
  return failed ? kFailed : kDone;
}

// Data are looked for from the current folder first: a run of their name would be taken for them from then on.
void refuse_name_of_data(const Config& recipe, const fs::path& folder) {
  if (recipe.schema().find("data.path") >= recipe.schema().keys().size() || !recipe.has("data.path")) return;
  const fs::path data = recipe.string("data.path");
  if (!recipe.string("data.root").empty() || fs::absolute(data / "").lexically_normal().parent_path() !=
                                                 fs::absolute(folder / "").lexically_normal().parent_path())
    return;
  throw Exception(
      ErrorCode::invalid_input,
      fmt::format("the folder '{}' has the name of the data (data.path); choose another --out", folder.string()));
}

int train(const Output& out, TrainFlags flags) {
  app::RunOptions options = run_options(out, flags.exec);
  options.profile = flags.profile;
  if (flags.seed) flags.recipe = with_seed(flags.recipe, *flags.seed);
  const Config recipe = load_recipe(flags.recipe);
  const std::int64_t seed = recipe.integer("seed");
  std::optional<ClaimedFolder> claimed;
  if (flags.out.empty()) claimed.emplace(flags.recipe.recipe, seed);
  const fs::path folder = claimed ? claimed->path() : fs::path(flags.out);
  refuse_name_of_data(recipe, folder);
  if (flags.seeds && seed > kLargestSeed - *flags.seeds)
    throw Exception(ErrorCode::invalid_input, fmt::format("--seeds {} from seed {} on go beyond the largest seed, {}",
                                                          *flags.seeds, seed, kLargestSeed));
  if (!flags.sweeps.empty()) return train_sweep(out, flags, seed, folder, options);
  if (flags.seeds) return train_seeds(out, flags, seed, folder, options);
  const WatchedRun run = train_once(out, recipe, folder, options);
  print_run(out, folder, run);
  out.result(to_json(run.summary));
  return run.exit_code;
}

struct ResumeFlags {
  std::string folder;
  ExecFlags exec;
  bool profile = false, restart_optimizer = false;
};

int resume(const Output& out, const ResumeFlags& flags) {
  refuse_recipe_name(flags.folder);
  app::RunOptions options = run_options(out, flags.exec);
  options.profile = flags.profile;
  options.restart_optimizer = flags.restart_optimizer;
  const WatchedRun run =
      watch_run(out, flags.folder, options, [&](const app::RunOptions& o) { return app::resume(flags.folder, o); });
  print_run(out, flags.folder, run);
  out.result(to_json(run.summary));
  return run.exit_code;
}

}  // namespace

void add_train_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("train", "Train the model of a recipe");
  auto flags = std::make_shared<TrainFlags>();
  add_recipe_options(*command, flags->recipe);
  command->add_option("--out", flags->out, "Folder of the run, new or empty")
      ->type_name("DIR")
      ->check([](const std::string& name) {
        return name == "-"    ? "a run is a folder; one of that name is ./-"
               : name.empty() ? "it is empty; leave it out for runs/RECIPE-SEED"
                              : "";
      });
  command->add_option("--seed", flags->seed, "The same as --set seed=S")
      ->type_name("S")
      ->check(whole_number(0, kLargestSeed));
  add_count_option(*command, "--seeds", flags->seeds, "Train seeds S .. S+N-1, each in DIR/seed-S", 1, 100000);
  command->add_option("--sweep", flags->sweeps, "Train with every value of a key, some at a time; repeatable")
      ->type_name("KEY=V,V")
      ->allow_extra_args(false);
  add_exec_options(*command, flags->exec);
  command->add_flag("--profile", flags->profile, "Measure the time of each phase");
  add_quiet_option(*command, choice.flags);
  add_output_options(*command, choice.flags);
  command->footer(
      "Examples:\n"
      "  gradloom train kan-hello\n"
      "  gradloom train kan-tabular --set data.path=wine.csv --set data.target=quality --out runs/wine\n"
      "  gradloom train kan-hello --seeds 5 --json\n"
      "  gradloom train kan-hello --sweep optimizer.lr=0.5,0.1 --sweep 'model.hidden=[5],[3,3]' --out sweep");
  command->callback([flags, &choice] { choice.run = [flags](const Output& out) { return train(out, *flags); }; });
}

void add_resume_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("resume", "Continue a run that was interrupted");
  auto flags = std::make_shared<ResumeFlags>();
  command->add_option("DIR", flags->folder, "Folder of the run")->type_name("")->required();
  add_exec_options(*command, flags->exec);
  command->add_flag("--profile", flags->profile, "Measure the time of each phase");
  add_quiet_option(*command, choice.flags);
  add_output_options(*command, choice.flags);
  command->add_flag(
      "--restart-optimizer", flags->restart_optimizer,
      "Go on with a run of version 0.1: its parameters, fresh optimizer memory, the epoch from its start");
  command->footer("Example:\n  gradloom resume runs/kan-hello-0 --threads 2");
  command->callback([flags, &choice] { choice.run = [flags](const Output& out) { return resume(out, *flags); }; });
}

}  // namespace gradloom::cli
