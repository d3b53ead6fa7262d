#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <limits>
#include <memory>

#include "cli/commands.h"
#include "cli/series.h"
#include "cli/signals.h"
#include "cli/text.h"
#include "gradloom/io/file.h"

namespace gradloom::cli {
namespace {

namespace fs = std::filesystem;

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
  // What this has made, from the inside out.
  std::vector<std::string> folders() const {
    std::vector<std::string> made = {path_.string()};
    if (made_runs_) made.emplace_back("runs");
    return made;
  }

 private:
  fs::path path_;
  bool made_runs_ = false;
};

// Data are looked for from the current folder first: a run of their name would be taken for them from then on.
void refuse_name_of_data(const Config& recipe, const fs::path& folder) {
  if (recipe.schema().find("data.path") >= recipe.schema().keys().size() || !recipe.has("data.path")) return;
  const fs::path data = recipe.string("data.path");
  if (!recipe.string("data.root").empty() || fs::absolute(data / "").lexically_normal().parent_path() !=
                                                 fs::absolute(folder / "").lexically_normal().parent_path())
    return;
  throw_invalid(
      fmt::format("the folder '{}' is also the path of the data (data.path); choose another --out", folder.string()));
}

int train(const Output& out, TrainFlags flags) {
  app::RunOptions options = run_options(out, flags.exec);
  options.profile = flags.profile;
  if (flags.seed) flags.recipe = with_seed(flags.recipe, *flags.seed);
  const Config recipe = load_recipe(flags.recipe);
  const std::int64_t seed = recipe.integer("seed");
  std::optional<ClaimedFolder> claimed;
  if (flags.out.empty() && out.writes()) claimed.emplace(flags.recipe.recipe, seed);
  fs::path folder = claimed ? claimed->path() : fs::path(flags.out);
  if (out.comm()) folder = out.comm()->broadcast(folder.string());
  if (out.writes()) refuse_name_of_data(recipe, folder);
  if (flags.seeds && seed > kLargestSeed - *flags.seeds)
    throw_invalid(
        fmt::format("--seeds {} from seed {} on exceeds the largest seed, {}", *flags.seeds, seed, kLargestSeed));
  if (!flags.sweeps.empty()) return train_sweep(out, flags, seed, folder, options);
  if (flags.seeds) return train_seeds(out, flags, seed, folder, options);
  EndAtOnce end_at_once(claimed ? claimed->folders() : std::vector<std::string>());
  if (!out.comm()) options.reading = [&](bool reads) { reads ? end_at_once.begin() : end_at_once.end(); };
  const WatchedRun run = train_once(out, recipe, folder, options);
  if (out.writes()) print_run(out, folder, run);
  if (out.writes()) out.result(to_json(run.summary));
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
  EndAtOnce end_at_once({});
  if (!out.comm()) options.reading = [&](bool reads) { reads ? end_at_once.begin() : end_at_once.end(); };
  const WatchedRun run =
      watch_run(out, flags.folder, options, [&](const app::RunOptions& o) { return app::resume(flags.folder, o); });
  if (out.writes()) print_run(out, flags.folder, run);
  if (out.writes()) out.result(to_json(run.summary));
  return run.exit_code;
}

}  // namespace

void add_train_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("train", "Train the model of a recipe");
  auto flags = std::make_shared<TrainFlags>();
  add_recipe_options(*command, flags->recipe);
  command->add_option("--out", flags->out, "Run folder, new or empty")
      ->type_name("DIR")
      ->check([](const std::string& name) {
        return name == "-"
                   ? "a run needs a folder; - does not stand for standard output, write ./- for a folder of that name"
               : name.empty() ? "it is empty; leave the option out to write to runs/RECIPE-SEED"
                              : "";
      });
  command->add_option("--seed", flags->seed, "The same as --set seed=S")
      ->type_name("S")
      ->check(whole_number(0, kLargestSeed));
  add_count_option(*command, "--seeds", flags->seeds, "Train seeds S .. S+N-1, each in DIR/seed-S", 1, 100000);
  command
      ->add_option("--sweep", flags->sweeps,
                   "Train every combination of the values of these keys, several runs at a time; repeatable")
      ->type_name("KEY=V,V")
      ->allow_extra_args(false);
  add_exec_options(*command, flags->exec);
  command->add_flag("--profile", flags->profile, "Also measure the time of each phase");
  add_quiet_option(*command, choice.flags);
  add_output_options(*command, choice.flags);
  command->footer(
      "Examples:\n"
      "  gradloom train kan-hello\n"
      "  gradloom train kan-tabular --set data.path=wine.csv --set data.target=quality --out runs/wine\n"
      "  gradloom train kan-hello --seeds 5 --json\n"
      "  gradloom train kan-hello --sweep optimizer.lr=0.5,0.1 --sweep 'model.hidden=[5],[3,3]' --out sweep");
  command->callback([flags, &choice] {
    choice.who = Who::all_ranks;
    choice.run = [flags](const Output& out) { return train(out, *flags); };
  });
}

void add_resume_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("resume", "Continue a run that was interrupted");
  auto flags = std::make_shared<ResumeFlags>();
  command->add_option("DIR", flags->folder, "Run folder")->type_name("")->required();
  add_exec_options(*command, flags->exec);
  command->add_flag("--profile", flags->profile, "Also measure the time of each phase");
  add_quiet_option(*command, choice.flags);
  add_output_options(*command, choice.flags);
  command->add_flag(
      "--restart-optimizer", flags->restart_optimizer,
      "Continue a run of version 0.1: keep its parameters, reset the optimizer, repeat the interrupted epoch");
  command->footer("Example:\n  gradloom resume runs/kan-hello-0 --threads 2");
  command->callback([flags, &choice] {
    choice.who = Who::all_ranks;
    choice.run = [flags](const Output& out) { return resume(out, *flags); };
  });
}

}  // namespace gradloom::cli
