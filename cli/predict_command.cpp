#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/predict.h"
#include "cli/text.h"

namespace gradloom::cli {
namespace {

struct PredictFlags {
  std::string model;
  app::PredictOptions what;
  ExecFlags exec;
};

int predict(const Output& out, const PredictFlags& flags) {
  refuse_recipe_name(flags.model);
  app::RunOptions options = run_options(out, flags.exec);
  options.comm = out.comm();
  const app::PredictReport r = app::predict(flags.model, options, flags.what).or_throw();
  if (!out.writes()) return kDone;
  print_prediction(out, r, flags.what.file.string());
  out.result(to_json(r));
  return kDone;
}

}  // namespace

void print_prediction(const Output& out, const app::PredictReport& r, const std::string& data) {
  out.print(r.family == "formula"
                ? fmt::format("{}, a formula\n", r.model)
                : fmt::format("{}, family {}, after {}\n", r.model, r.family, counted(r.epochs, "epoch")));
  for (const std::string& warning : r.warnings) out.tell(fmt::format("warning: {}\n", warning));
  std::vector<app::TextRow> rows;
  rows.emplace_back(data, r.data.is_object() ? metrics_text(r.data) : "the target is not in the data");
  if (r.outside) rows.emplace_back("outside", fmt::format("{} of {}", *r.outside, counted(r.rows, "row")));
  if (r.out) rows.emplace_back("predictions", fmt::format("{}, {}", *r.out, counted(r.rows, "row")));
  out.print_rows(rows);
}

void add_predict_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("predict", "Predict new data with a trained model");
  auto flags = std::make_shared<PredictFlags>();
  command->add_option("MODEL", flags->model, "A model.safetensors, a run folder or a formula.json")
      ->type_name("")
      ->required();
  command->add_option("--data", flags->what.file, "The new data; the target may be absent")
      ->type_name("FILE")
      ->required()
      ->check(names_a_file);
  command->add_option("--out", flags->what.out, "Write the predictions to FILE.csv, or only their numbers to FILE.npy")
      ->type_name("FILE")
      ->required()
      ->check(names_a_file);
  add_new_graph_options(*command, flags->what);
  add_exec_options(*command, flags->exec);
  add_output_options(*command, choice.flags);
  command->footer(
      "Examples:\n  gradloom predict runs/wine --data new.csv --out quality.csv\n"
      "  gradloom predict model.safetensors --data new.csv --out quality.npy");
  command->callback([flags, &choice] {
    choice.who = Who::all_ranks;
    choice.run = [flags](const Output& out) {
      return with_hints(kNewGraphHints, [&] { return predict(out, *flags); });
    };
  });
}

}  // namespace gradloom::cli
