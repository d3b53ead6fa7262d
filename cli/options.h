// Options that several commands share, and the environment.
#pragma once

#include <CLI/App.hpp>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "gradloom/app/predict/new_data.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/run/run.h"
#include "gradloom/base/choice.h"
#include "gradloom/io/config.h"

namespace gradloom::cli {

void add_output_options(CLI::App& command, OutputFlags& flags);  // --json
void add_quiet_option(CLI::App& command, OutputFlags& flags);

struct ExecFlags {
  unsigned threads = 0;  // 0: one per core
  std::string exec = "fast";
  std::string device = "cpu";
  std::string arithmetic;  // empty: fused where the processor has it, or that of the run
};

// Whole numbers from `low` to `high` and nothing else: the parser would wrap or saturate others without a word.
CLI::Validator whole_number(std::uint64_t low, std::uint64_t high);

// The same for other numbers; no NaN.
CLI::Validator number_between(double low, double high);

// The names of a table and nothing else.
template <class Table>
CLI::Validator name_in(const Table& table) {
  std::vector<std::string> names;
  for (const auto& choice : table) names.emplace_back(choice.name);
  return CLI::IsMember(names).description("");
}

// A whole number from `low` to `high`, N in the help.
template <class V>
void add_count_option(CLI::App& command, const char* name, V& value, const char* text, unsigned low, unsigned high) {
  command.add_option(name, value, text)->type_name("N")->check(whole_number(low, high));
}

void add_threads_option(CLI::App& command, unsigned& threads);
void add_seconds_option(CLI::App& command, double& seconds, const std::string& text);
void add_exec_options(CLI::App& command, ExecFlags& flags);  // --threads, --exec, --device, --arithmetic

// --distances, --nodes, --folder: what belongs to the graphs of --data.
void add_new_graph_options(CLI::App& command, app::NewData& data);
inline constexpr std::array kNewGraphHints = {
    KeyHint{"data.graph_folder", "--folder names the folder of the files that --data lists"},
    KeyHint{"data.nodes", "--nodes names the table of the nodes of --data"}};
void add_circuit_option(CLI::App& command, std::string& circuit);  // CIRCUIT

struct RecipeFlags {
  std::string recipe;
  std::vector<std::string> overrides;
};

CLI::Option* add_set_option(CLI::App& command, std::vector<std::string>& overrides);
void add_recipe_options(CLI::App& command, RecipeFlags& flags);  // RECIPE, --set
// Throws Failure as load_recipe fails.
Config load_recipe(const RecipeFlags& flags, app::RecipeName naming = app::RecipeName::of_file);

// A check of an option that names a file: what a variable that was never set leaves is refused, and what stands for
// standard output elsewhere.
inline std::string names_a_file(const std::string& name) {
  if (name == "-") return "- does not stand for standard input or output; write ./- for a file of that name";
  return name.empty() ? "it is empty; name a file, or leave the option out" : "";
}

// Throws when `out` is one of these files.
void refuse_overwriting(const std::filesystem::path& out, std::initializer_list<std::filesystem::path> inputs);
// Throws when the name of a recipe was passed instead of a run folder, and there is no such folder.
void refuse_recipe_name(const std::filesystem::path& folder);

// GRADLOOM_DATA, or the current folder.
std::filesystem::path default_data_root();

// Opens a device by name ("cpu", "gpu", "auto", a name, a number). Null for the CPU. Throws missing_device, or
// unsupported when its limits are too small or it does not have the arithmetic (none: its best); "auto" takes the CPU
// instead and says so, unless `out` is quiet. A note says that a device is software.
std::shared_ptr<vulkan::Device> open_device(const Output& out, const std::string& name,
                                            std::optional<Arithmetic> arithmetic = {});

// Reads GRADLOOM_DATA and opens the device.
app::RunOptions run_options(const Output& out, const ExecFlags& flags);

}  // namespace gradloom::cli
