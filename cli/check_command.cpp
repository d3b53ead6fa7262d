#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/text.h"

namespace gradloom::cli {
namespace {

struct CheckFlags {
  RecipeFlags recipe;
  ExecFlags exec;
  app::CheckOptions what;
};

void print_mismatches(const Output& out, const nlohmann::json& mismatches) {
  std::size_t width = 7;
  for (const auto& m : mismatches) width = std::max(width, m.value("where", "").size());
  out.print(fmt::format("\n  {}\n", out.paint(Paint::bold, "Worst elements")));
  out.print(fmt::format("  {:<{}}  {:>18}  {:>18}\n", "element", width, "backward", "numeric"));
  for (const auto& m : mismatches)
    out.print(fmt::format("  {:<{}}  {:>18.10g}  {:>18.10g}\n", m.value("where", "?"), width, m.value("analytic", 0.0),
                          m.value("numeric", 0.0)));
}

// What was compared with the cpu, and how far apart they may be.
std::string device_text(const Config& recipe, const nlohmann::json& r) {
  const std::string after =
      fmt::format("parameters after {} of {}", counted(r["device_steps"].get<std::uint64_t>(), "step"),
                  recipe.string("optimizer.kind"));
  if (r["device_equal"].get<bool>()) return "equal bits: " + after;
  return fmt::format("{} differ by {} of the largest; {} is allowed", after, figure(r["device_difference"]),
                     figure(r["device_allowed"]));
}

void print_check(const Output& out, const std::string& title, const Config& recipe, const nlohmann::json& r) {
  const bool passed = r.value("passed", false);
  out.print(
      fmt::format("{}: {}\n", title, passed ? out.paint(Paint::green, "passed") : out.paint(Paint::red, "FAILED")));
  std::vector<std::pair<std::string, std::string>> rows;
  const auto count = [&](const char* key) { return r.value(key, std::uint64_t{0}); };
  rows.emplace_back("gradients", fmt::format("{} checked, largest relative error {}; {} zero, {} redrawn",
                                             counted(count("checked"), "element"),
                                             figure(r.value("max_relative_error", nlohmann::json())), count("zero"),
                                             counted(count("redrawn"), "stencil")));
  if (r.contains("dual_error"))
    rows.emplace_back("dual numbers", fmt::format("largest relative error {}", figure(r["dual_error"])));
  const auto verdict = [&](const char* label, const char* equal, const char* of) {
    if (!r.contains(equal) || !r[equal].is_boolean()) return;
    std::string names;
    for (const auto& name : r.value(of, nlohmann::json::array()))
      names +=
          fmt::format("{}{}", names.empty() ? " on " : ", ", name.is_string() ? name.get<std::string>() : name.dump());
    rows.emplace_back(label,
                      r[equal].get<bool>() ? "equal bits" + names : out.paint(Paint::red, "bits DIFFER") + names);
  };
  verdict("threads", "threads_equal", "threads");
  verdict("simd targets", "targets_equal", "targets");
  verdict("reference", "reference_equal", "");
  if (r.contains("device_equal")) rows.emplace_back(r.value("device", "device"), device_text(recipe, r));
  if (r.contains("reason") && r["reason"].is_string() && !r["reason"].get<std::string>().empty())
    rows.emplace_back("reason", r["reason"].get<std::string>());
  out.print_rows(rows);
  if (!passed && r.contains("mismatches") && r["mismatches"].is_array() && !r["mismatches"].empty())
    print_mismatches(out, r["mismatches"]);
}

int check(const Output& out, const CheckFlags& flags) {
  const app::RunOptions options = run_options(out, flags.exec);
  const Config recipe = load_recipe(flags.recipe);
  const nlohmann::json result = app::check(recipe, options, flags.what).or_throw();
  print_check(out, flags.recipe.recipe, recipe, result);
  out.result(result);
  return result.value("passed", false) ? kDone : kFailed;
}

}  // namespace

void add_check_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("check", "Prove a model's gradients, and that its bits are the same");
  auto flags = std::make_shared<CheckFlags>();
  add_recipe_options(*command, flags->recipe);
  command->add_option("--samples", flags->what.samples, "Samples to check on")
      ->type_name("N")
      ->check(CLI::Range(1u, 1000000u).description(""));
  command->add_option("--max-elements", flags->what.max_elements, "Most elements of each gradient to check")
      ->type_name("N")
      ->check(whole_number(1, std::uint64_t{1} << 62));
  add_exec_options(*command, flags->exec);
  add_output_options(*command, choice.flags);
  command->footer(
      "The exit code is 1 when the check fails.\n\nExample:\n  gradloom check kan-hello --set model.degree=2");
  command->callback([flags, &choice] { choice.run = [flags](const Output& out) { return check(out, *flags); }; });
}

}  // namespace gradloom::cli
