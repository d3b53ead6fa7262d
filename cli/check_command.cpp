#include <fmt/format.h>
#include <fmt/ranges.h>

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

void print_mismatches(const Output& out, const std::vector<GradientMismatch>& mismatches) {
  std::size_t width = 7;
  for (const GradientMismatch& m : mismatches) width = std::max(width, m.where.size());
  out.print(fmt::format("\n  {}\n", out.paint(Paint::bold, "Worst elements")));
  out.print(fmt::format("  {:<{}}  {:>18}  {:>18}\n", "element", width, "backward", "numeric"));
  for (const GradientMismatch& m : mismatches)
    out.print(fmt::format("  {:<{}}  {:>18.10g}  {:>18.10g}\n", m.where, width, m.analytic, m.numeric));
}

// What was compared with the cpu, and how far apart they may be.
std::string device_text(const Config& recipe, const DeviceComparison& d) {
  const std::string after =
      fmt::format("parameters after {} of {}", counted(d.device_steps, "step"), recipe.string("optimizer.kind"));
  if (d.device_equal) return "equal bits: " + after;
  return fmt::format("{} differ by {} of the largest; {} is allowed", after, figure(d.device_difference),
                     figure(d.device_allowed));
}

void print_check(const Output& out, const std::string& title, const Config& recipe, const CheckReport& r) {
  out.print(
      fmt::format("{}: {}\n", title, r.passed ? out.paint(Paint::green, "passed") : out.paint(Paint::red, "FAILED")));
  std::vector<std::pair<std::string, std::string>> rows;
  rows.emplace_back("gradients", fmt::format("{} checked, largest relative error {}; {} zero, {} redrawn",
                                             counted(r.checked, "element"), figure(r.max_relative_error), r.zero,
                                             counted(r.redrawn, "stencil")));
  rows.emplace_back("dual numbers", fmt::format("largest relative error {}", figure(r.dual_error)));
  const auto verdict = [&](const char* label, bool equal, const std::string& names) {
    const std::string on = names.empty() ? "" : " on " + names;
    rows.emplace_back(label, equal ? "equal bits" + on : out.paint(Paint::red, "bits DIFFER") + on);
  };
  verdict("threads", r.threads_equal, fmt::format("{}", fmt::join(r.threads, ", ")));
  verdict("simd targets", r.targets_equal, fmt::format("{}", fmt::join(r.targets, ", ")));
  verdict("reference", r.reference_equal, "");
  if (r.device) rows.emplace_back(r.device->device, device_text(recipe, *r.device));
  if (!r.reason.empty()) rows.emplace_back("reason", r.reason);
  out.print_rows(rows);
  if (!r.passed && !r.mismatches.empty()) print_mismatches(out, r.mismatches);
}

int check(const Output& out, const CheckFlags& flags) {
  const app::RunOptions options = run_options(out, flags.exec);
  const Config recipe = load_recipe(flags.recipe);
  const CheckReport report = app::check(recipe, options, flags.what).or_throw();
  print_check(out, flags.recipe.recipe, recipe, report);
  out.result(to_json(report));
  return report.passed ? kDone : kFailed;
}

}  // namespace

void add_check_command(CLI::App& program, Choice& choice) {
  CLI::App* command =
      program.add_subcommand("check", "Check the gradients of a model, and that training gives equal bits");
  auto flags = std::make_shared<CheckFlags>();
  add_recipe_options(*command, flags->recipe);
  add_count_option(*command, "--samples", flags->what.samples, "Number of samples to check on", 1, 1000000);
  command
      ->add_option("--max-elements", flags->what.max_elements, "Maximum number of elements to check in each gradient")
      ->type_name("N")
      ->check(whole_number(1, std::uint64_t{1} << 62));
  add_exec_options(*command, flags->exec);
  add_output_options(*command, choice.flags);
  command->footer(
      "The exit code is 1 when the check fails.\n\nExample:\n  gradloom check kan-hello --set model.degree=2");
  command->callback([flags, &choice] { choice.run = [flags](const Output& out) { return check(out, *flags); }; });
}

}  // namespace gradloom::cli
