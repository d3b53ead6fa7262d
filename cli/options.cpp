#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>

#include "cli/ranks.h"
#include "gradloom/app/recipe.h"
#include "gradloom/exec/arithmetic_names.h"
#include "gradloom/io/file.h"

namespace gradloom::cli {
namespace {

constexpr gradloom::Choice<Variant::Code> kVariants[] = {
    {Variant::fast, "fast", "SIMD"},
    {Variant::reference, "reference", "scalar and slow, with equal bits"},
};

}  // namespace

void add_output_options(CLI::App& command, OutputFlags& flags) {
  command.add_flag("--json", flags.json, "Print one JSON object on standard output");
}

void add_quiet_option(CLI::App& command, OutputFlags& flags) {
  command.add_flag("-q,--quiet", flags.quiet, "Print only errors and the result");
}

CLI::Validator whole_number(std::uint64_t low, std::uint64_t high) {
  return CLI::Validator(
      [low, high](const std::string& text) -> std::string {
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= low && value <= high) return "";
        return fmt::format("{} is not a whole number from {} to {}", text, low, high);
      },
      "");
}

CLI::Validator number_between(double low, double high) {
  return CLI::Validator(
      [low, high](const std::string& text) -> std::string {
        double value = 0.0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= low && value <= high) return "";
        return fmt::format("{} is not a number from {} to {}", text, low, high);
      },
      "");
}

void add_threads_option(CLI::App& command, unsigned& threads) {
  command.add_option("--threads", threads, "Number of threads, 0: one per core; results have equal bits")
      ->type_name("N")
      ->check(whole_number(0, 1024));
}

void add_seconds_option(CLI::App& command, double& seconds, const std::string& text) {
  command.add_option("--seconds", seconds, text)->type_name("S")->check(number_between(0.001, 3600.0));
}

void add_exec_options(CLI::App& command, ExecFlags& flags) {
  add_threads_option(command, flags.threads);
  command.add_option("--exec", flags.exec, "fast, or reference: scalar and slow, with equal bits")
      ->type_name("HOW")
      ->check(name_in(kVariants));
  command
      .add_option(
          "--arithmetic", flags.arithmetic,
          "fused or split: how a product that is added is rounded; default: fused where processor and device have it")
      ->type_name("HOW")
      ->check(name_in(kArithmetics));
  command.add_option("--device", flags.device, "cpu, gpu, auto, or a device by name or number (spline networks)")
      ->type_name("NAME");
}

void add_new_graph_options(CLI::App& command, app::NewData& data) {
  command.add_option("--nodes", data.nodes, "Graphs: the table of the nodes; --data is that of the edges")
      ->type_name("FILE")
      ->check(names_a_file);
  command.add_option("--folder", data.folder, "Graphs: folder of the files that a collection lists; default: its own")
      ->type_name("DIR")
      ->check(names_a_file);
  command.add_option("--distances", data.distances, "Graph pairs: the exact distances of the pairs of --data")
      ->type_name("FILE")
      ->check(names_a_file);
}

void add_circuit_option(CLI::App& command, std::string& circuit) {
  const char* text =
      "A circuit.json, model.safetensors or run folder, or a shipped circuit: game-of-life, checkerboard";
  command.add_option("CIRCUIT", circuit, text)->type_name("")->required();
}

CLI::Option* add_set_option(CLI::App& command, std::vector<std::string>& overrides) {
  return command.add_option("--set", overrides, "Override a key of the recipe; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_recipe_options(CLI::App& command, RecipeFlags& flags) {
  command.add_option("RECIPE", flags.recipe, "Name of a recipe (see gradloom recipes), or a file.toml")
      ->type_name("")
      ->required();
  add_set_option(command, flags.overrides);
}

Config load_recipe(const RecipeFlags& flags, app::RecipeName naming) {
  auto recipe = app::load_recipe(flags.recipe, flags.overrides, naming);
  if (recipe) return std::move(*recipe);
  std::string hint;
  std::error_code ignored;
  if (recipe.error().code == ErrorCode::invalid_input && !std::filesystem::is_directory(flags.recipe, ignored))
    hint = "`gradloom recipes show NAME` prints every key with its meaning";
  throw Failure(recipe.error(), hint);
}

void refuse_overwriting(const std::filesystem::path& out, std::initializer_list<std::filesystem::path> inputs) {
  gradloom::refuse_overwriting(out, std::span(inputs.begin(), inputs.size())).or_throw();
}

void refuse_recipe_name(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(folder, ignored)) return;
  for (const app::ShippedRecipe& recipe : app::shipped_recipes())
    if ((folder / "").parent_path() == std::filesystem::path(recipe.name))
      throw Exception(ErrorCode::not_found, fmt::format("there is no folder '{0}', but a recipe of that name: "
                                                        "`gradloom train {0}` trains it and prints the folder",
                                                        recipe.name));
}

std::filesystem::path default_data_root() {
  const char* root = std::getenv("GRADLOOM_DATA");
  return root && *root ? root : ".";
}

std::shared_ptr<vulkan::Device> open_device(const Output& out, const std::string& name,
                                            std::optional<Arithmetic> arithmetic) {
  if (name == "cpu") return nullptr;
  if (name != "auto") {
    std::shared_ptr<vulkan::Device> device = vulkan::Device::open({.name = name, .arithmetic = arithmetic}).or_throw();
    if (device->info().kind == vulkan::DeviceKind::software && !out.quiet() && !out.json())
      out.tell(fmt::format("note: {} is a software device; its times are not those of a GPU\n", device->info().name));
    return device;
  }
  const auto devices = vulkan::list_devices();
  std::string reason = "there is no GPU";
  for (const vulkan::DeviceInfo& info : devices ? *devices : std::vector<vulkan::DeviceInfo>{})
    if (info.kind == vulkan::DeviceKind::software) {
      reason = fmt::format("there is no GPU, only {}, which is slower than the CPU itself", info.name);
    } else {
      auto device = vulkan::Device::open({.name = "gpu", .arithmetic = arithmetic});
      if (device) return std::move(*device);
      reason = device.error().message;
      break;
    }
  if (!out.quiet()) out.tell(fmt::format("running on the CPU: {}\n", reason));
  return nullptr;
}

app::RunOptions run_options(const Output& out, const ExecFlags& flags) {
  app::RunOptions options;
  const auto arithmetic = find_choice<Arithmetic>(kArithmetics, flags.arithmetic);  // none: not chosen
  options.device = open_device(out, flags.device, arithmetic);
  options.device_policy = flags.device == "auto" ? app::DevicePolicy::preferred : app::DevicePolicy::required;
  options.exec.threads = flags.threads == 0 ? threads_of_this_rank() : flags.threads;
  options.exec.variant = value_of<Variant::Code>(kVariants, flags.exec, "--exec").or_throw();
  if (arithmetic) options.exec.variant.arithmetic = *arithmetic;
  options.arithmetic = arithmetic;
  options.data_root = default_data_root();
  return options;
}

}  // namespace gradloom::cli
