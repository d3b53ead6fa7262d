#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <set>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/predict.h"
#include "cli/text.h"

namespace gradloom::cli {
namespace {

struct EvalFlags {
  std::string folder;
  app::EvaluateOptions what;
  ExecFlags exec;
};

// A model file has no data of its own.
int evaluate_file(const Output& out, const EvalFlags& flags) {
  if (flags.what.data.file.empty())
    throw Failure({ErrorCode::invalid_input, fmt::format("{} is a model file, which contains no data", flags.folder)},
                  "pass the data to measure it on with --data FILE");
  const app::PredictOptions what{flags.what.data, flags.what.predictions};
  app::RunOptions options = run_options(out, flags.exec);
  options.comm = out.comm();
  const app::PredictReport r = app::predict(flags.folder, options, what).or_throw();
  if (!out.writes()) return kDone;
  print_prediction(out, r, what.file.string());
  out.result(to_json(r));
  return kDone;
}

int evaluate(const Output& out, const EvalFlags& flags) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(flags.folder, ignored)) return evaluate_file(out, flags);
  refuse_recipe_name(flags.folder);
  app::RunOptions options = run_options(out, flags.exec);
  options.comm = out.comm();
  std::set<std::string> told;  // warnings that have been shown while the run was opened
  options.log = [&](LogLevel level, const std::string& text) {
    out.tell(fmt::format("{}{}\n", level == LogLevel::warning ? "warning: " : "", text));
    told.insert(text);
  };
  const app::Evaluation e = app::evaluate(flags.folder, options, flags.what).or_throw();
  if (!out.writes()) return kDone;
  out.print(fmt::format("{}, after {}\n", flags.folder, counted(e.epochs, "epoch")));
  if (e.data_changed) out.tell("warning: the training data have changed since this run was trained\n");
  std::vector<app::TextRow> rows = metrics_rows(e.metrics);
  if (e.data)
    rows.emplace_back(flags.what.data.file.string(),
                      e.data->is_object() ? metrics_text(*e.data) : "has no target column");
  for (app::TextRow& row : outside_rows(e.rows_outside)) rows.push_back(std::move(row));
  if (e.outside)
    rows.emplace_back("outside", fmt::format("{} rows with a feature outside of its training range", *e.outside));
  rows.insert(rows.end(), e.found.begin(), e.found.end());
  if (e.rows)
    rows.emplace_back("predictions", fmt::format("{}, {}", flags.what.predictions.string(), counted(*e.rows, "row")));
  for (const std::string& warning : e.warnings)
    if (!told.contains(warning)) rows.emplace_back("warning", warning);
  out.print_rows(rows);
  out.result(to_json(e));
  return kDone;
}

}  // namespace

void add_eval_command(CLI::App& program, Choice& choice) {
  CLI::App* command =
      program.add_subcommand("eval", "Measure the model of a run on its training, validation and test data");
  auto flags = std::make_shared<EvalFlags>();
  command->add_option("MODEL", flags->folder, "A run folder, or with --data a model.safetensors")
      ->type_name("")
      ->required();
  command
      ->add_option("--predictions", flags->what.predictions,
                   "Write predictions for the test data, or for those of --data")
      ->type_name("FILE.csv")
      ->check(names_a_file);
  command->add_option("--data", flags->what.data.file, "Also measure and predict these data; the target may be absent")
      ->type_name("FILE")
      ->check(names_a_file);
  add_new_graph_options(*command, flags->what.data);
  add_exec_options(*command, flags->exec);
  add_output_options(*command, choice.flags);
  command->footer(
      "Examples:\n  gradloom eval runs/kan-hello-0 --predictions test.csv\n"
      "  gradloom eval runs/wine --data new.csv --predictions new-quality.csv");
  command->callback([flags, &choice] {
    choice.who = Who::all_ranks;
    choice.run = [flags](const Output& out) {
      return with_hints(kNewGraphHints, [&] { return evaluate(out, *flags); });
    };
  });
}

}  // namespace gradloom::cli
