#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/text.h"
#include "gradloom/app/formula/formula.h"

namespace gradloom::cli {
namespace {

struct PruneFlags {
  std::string model, out, data;
  double threshold = 0.01, worse = 0.0;
  std::size_t inputs = 0;
  bool by_inputs = false, by_error = false;
  ExecFlags exec;
};

int prune(const Output& out, const PruneFlags& flags) {
  refuse_recipe_name(flags.model);
  app::PruneOptions options;
  options.out = flags.out, options.data = flags.data;
  if (flags.by_inputs)
    options.inputs = flags.inputs;
  else if (flags.by_error)
    options.worse = flags.worse;
  else
    options.threshold = flags.threshold;
  const app::PruneReport r = app::prune_model(flags.model, run_options(out, flags.exec), options).or_throw();
  std::vector<app::TextRow> rows;
  rows.emplace_back(
      "inputs", fmt::format("{} of {}: {}", r.kept.size(), r.kept.size() + r.removed.size(), fmt::join(r.kept, ", ")));
  rows.emplace_back("widths",
                    fmt::format("[{}], before [{}]", fmt::join(r.widths, ", "), fmt::join(r.widths_before, ", ")));
  rows.emplace_back("edges", fmt::format("{}, before {}", r.edges, r.edges_before));
  rows.emplace_back("parameters", fmt::format("{}, before {}", r.parameters, r.parameters_before));
  rows.emplace_back("rmse", fmt::format("{}, before {}", figure(r.rmse), figure(r.rmse_before)));
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
      ->add_option("--threshold", flags->threshold,
                   "Drop inputs, nodes and edges with a smaller share of the output's variance")
      ->type_name("SHARE")
      ->check(number_between(0, 1));
  CLI::Option* inputs = command->add_option("--inputs", flags->inputs, "Keep this number of inputs instead")
                            ->type_name("N")
                            ->check(whole_number(1, 1000000));
  CLI::Option* worse =
      command
          ->add_option("--worse", flags->worse, "Drop as much as possible while the error grows by at most this share")
          ->type_name("SHARE")
          ->check(number_between(0, 1000));
  inputs->excludes(worse);
  command->add_option("--data", flags->data, "Score on these rows instead of those of the run")
      ->type_name("FILE")
      ->check(names_a_file);
  add_exec_options(*command, flags->exec);
  add_output_options(*command, choice.flags);
  command->footer(
      "Examples:\n  gradloom prune runs/mine --worse 0.05 --out small.safetensors\n"
      "  gradloom prune runs/mine --threshold 0.001 --out small.safetensors");
  command->callback([flags, inputs, worse, &choice] {
    flags->by_inputs = inputs->count() > 0, flags->by_error = worse->count() > 0;
    choice.run = [flags](const Output& out) { return prune(out, *flags); };
  });
}

}  // namespace gradloom::cli
