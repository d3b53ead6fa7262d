#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/text.h"
#include "gradloom/app/formula/formula.h"

namespace gradloom::cli {
namespace {

struct PruneFlags {
  std::string model, out, data;
  std::optional<double> threshold, worse;
  std::optional<std::size_t> inputs;
  ExecFlags exec;
};

int prune(const Output& out, const PruneFlags& flags) {
  refuse_recipe_name(flags.model);
  app::PruneOptions options;
  options.out = flags.out, options.data = flags.data;
  options.threshold = flags.threshold, options.inputs = flags.inputs, options.worse = flags.worse;
  const app::PruneReport r = app::prune_model(flags.model, run_options(out, flags.exec), options).or_throw();
  std::vector<app::TextRow> rows;
  rows.emplace_back(
      "inputs", fmt::format("{} of {}: {}", r.kept.size(), r.kept.size() + r.removed.size(), fmt::join(r.kept, ", ")));
  rows.emplace_back("widths",
                    fmt::format("[{}], before [{}]", fmt::join(r.widths, ", "), fmt::join(r.widths_before, ", ")));
  rows.emplace_back("edges", fmt::format("{}, before {}", r.edges, r.edges_before));
  rows.emplace_back("parameters", fmt::format("{}, before {}", r.parameters, r.parameters_before));
  if (r.rmse) rows.emplace_back("rmse", fmt::format("{}, before {}", figure(*r.rmse), figure(*r.rmse_before)));
  if (r.loss) rows.emplace_back("loss", fmt::format("{}, before {}", figure(*r.loss), figure(*r.loss_before)));
  rows.emplace_back("change", fmt::format("at most {} on the rows", figure(r.change)));
  rows.emplace_back("written to", r.out);
  for (const std::string& warning : r.warnings) rows.emplace_back("warning", warning);
  out.print_rows(rows);
  out.result(to_json(r));
  return kDone;
}

}  // namespace

void add_prune_command(CLI::App& program, Choice& choice) {
  CLI::App* command =
      program.add_subcommand("prune", "Remove inputs, nodes and edges that contribute little to the output");
  auto flags = std::make_shared<PruneFlags>();
  command->add_option("MODEL", flags->model, "A run folder, or with --data a model.safetensors")
      ->type_name("")
      ->required();
  command->add_option("--out", flags->out, "Write the smaller model to this file")
      ->type_name("FILE")
      ->required()
      ->check(names_a_file);
  command
      ->add_option(
          "--threshold", flags->threshold,
          fmt::format("Drop inputs, nodes and edges with a smaller share of the output's variance; default: {}",
                      app::kPruneThreshold))
      ->type_name("SHARE")
      ->check(number_between(0, 1));
  command->add_option("--inputs", flags->inputs, "Keep this number of inputs instead")
      ->type_name("N")
      ->check(whole_number(1, 1000000));
  command->add_option("--worse", flags->worse, "Drop as much as possible while the error grows by at most this share")
      ->type_name("SHARE")
      ->check(number_between(0, 1000));
  command->add_option("--data", flags->data, "Score on these rows instead of those of the run")
      ->type_name("FILE")
      ->check(names_a_file);
  add_exec_options(*command, flags->exec);
  add_output_options(*command, choice.flags);
  command->footer(
      "Examples:\n  gradloom prune runs/mine --worse 0.05 --out small.safetensors\n"
      "  gradloom prune runs/mine --threshold 0.001 --out small.safetensors");
  command->callback([flags, &choice] { choice.run = [flags](const Output& out) { return prune(out, *flags); }; });
}

}  // namespace gradloom::cli
