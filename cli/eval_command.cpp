#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/text.h"

namespace gradloom::cli {
namespace {

struct EvalFlags {
  std::string folder, predictions, data;
  ExecFlags exec;
};

int evaluate(const Output& out, const EvalFlags& flags) {
  refuse_recipe_name(flags.folder);
  refuse_overwriting_run(flags.predictions, flags.folder);
  app::Evaluation evaluation =
      app::evaluate(flags.folder, run_options(out, flags.exec), {.predictions = flags.predictions, .data = flags.data})
          .or_throw();
  nlohmann::json& result = evaluation.result;
  out.print(fmt::format("{}, after {}\n", flags.folder, counted(result.value("epochs", std::uint64_t{0}), "epoch")));
  if (result.value("data_changed", false))
    out.tell("warning: the training data have changed since this run was trained\n");
  std::vector<std::pair<std::string, std::string>> rows;
  for (const char* part : {"test", "validation", "train"})
    if (result.contains(part) && result[part].is_object()) rows.emplace_back(part, metrics_text(result[part]));
  if (!flags.data.empty())
    rows.emplace_back(flags.data, result["data"].is_object() ? metrics_text(result["data"]) : "has no target column");
  rows.insert(rows.end(), evaluation.rows.begin(), evaluation.rows.end());
  if (!flags.predictions.empty()) {
    rows.emplace_back("predictions",
                      fmt::format("{}, {}", flags.predictions, counted(result.value("rows", std::uint64_t{0}), "row")));
    result["predictions"] = flags.predictions;
  }
  out.print_rows(rows);
  out.result(result);
  return kDone;
}

}  // namespace

void add_eval_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("eval", "Measure the model of a run on its data");
  auto flags = std::make_shared<EvalFlags>();
  command->add_option("DIR", flags->folder, "Folder of the run")->type_name("")->required();
  command->add_option("--predictions", flags->predictions, "Write predictions for the test data, or those of --data")
      ->type_name("FILE.csv")
      ->check(names_a_file);
  command->add_option("--data", flags->data, "Measure and predict this table too; it may lack the target column")
      ->type_name("FILE")
      ->check(names_a_file);
  add_exec_options(*command, flags->exec);
  add_output_options(*command, choice.flags);
  command->footer(
      "Examples:\n  gradloom eval runs/kan-hello-0 --predictions test.csv\n"
      "  gradloom eval runs/wine --data new.csv --predictions new-quality.csv");
  command->callback([flags, &choice] { choice.run = [flags](const Output& out) { return evaluate(out, *flags); }; });
}

}  // namespace gradloom::cli
