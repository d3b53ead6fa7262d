#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/text.h"
#include "gradloom/app/formula/formula.h"
#include "gradloom/app/run/open.h"
#include "gradloom/io/file.h"

namespace gradloom::cli {
namespace {

struct FormulaFlags {
  app::FormulaSearchOptions options;
  std::string model, data, out;
  ExecFlags exec;
};

void print_formula(const Output& out, const nlohmann::json& f) {
  const auto text = [&](const char* key) { return f.value(key, std::string()); };
  out.print(fmt::format("{} = {}\n", text("target"), text("text")));
  std::vector<app::TextRow> rows;
  rows.emplace_back("status", text("status") + (text("note").empty() ? "" : ": " + text("note")));
  rows.emplace_back(
      "rmse", fmt::format("{} of the formula, {} of the network", figure(f.value("rmse_formula", nlohmann::json())),
                          figure(f.value("rmse_network", nlohmann::json()))));
  rows.emplace_back("complexity", fmt::format("{}", f.value("complexity", std::size_t{0})));
  rows.emplace_back("latex", text("latex"));
  rows.emplace_back("python", text("python"));
  std::string inputs;
  if (const char* key = f.contains("columns") ? "columns" : "inputs"; f.contains(key))
    for (const auto& i : f.at(key))
      inputs += fmt::format("{}{} {}", inputs.empty() ? "" : ", ", i.value("name", std::string()),
                            figure(i.value("score", nlohmann::json())));
  rows.emplace_back("inputs", inputs);
  out.print_rows(rows);
}

int formula(const Output& out, FormulaFlags flags) {
  refuse_recipe_name(flags.model);
  flags.options.data = flags.data;
  app::RunOptions run = run_options(out, flags.exec);
  if (!flags.out.empty())
    app::refuse_overwriting_inputs(flags.out, flags.model, run.data_root,
                                   std::array<std::filesystem::path, 1>{flags.data})
        .or_throw();
  int shown = 0;
  const auto progress = [&](double used, double limit) {
    const int percent = static_cast<int>(100 * used / limit);
    if (out.json() || out.quiet() || percent < shown + 5) return;
    shown = percent;
    out.tell(fmt::format("searched {} % of the effort\n", std::min(percent, 100)));
  };
  run.comm = out.comm();
  const nlohmann::json f = app::model_formula(flags.model, run, flags.options, progress).or_throw();
  if (!out.writes()) return kDone;
  if (!flags.out.empty()) write_file_atomic(flags.out, f.dump(1)).or_throw();
  for (const auto& warning : f.value("warnings", nlohmann::json::array()))
    out.tell(fmt::format("warning: {}\n", warning.get<std::string>()));
  if (f.contains("targets"))
    for (const auto& one : f.at("targets")) print_formula(out, one);
  else
    print_formula(out, f);
  out.result(f);
  return kDone;
}

}  // namespace

void add_formula_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("formula", "Find the formula of a trained spline network");
  auto flags = std::make_shared<FormulaFlags>();
  app::FormulaSearchOptions& o = flags->options;
  command->add_option("MODEL", flags->model, "A run folder, a model.safetensors or a formula.json")
      ->type_name("")
      ->required();
  command
      ->add_option("--data", flags->data,
                   "Search on these rows instead of those of the run; fit the numbers of a formula.json to them")
      ->type_name("FILE")
      ->check(names_a_file);
  command->add_option("--out", flags->out, "Write the formula to FILE.json, which `predict` reads")
      ->type_name("FILE")
      ->check(names_a_file);
  CLI::Option* effort =
      command->add_option("--effort", o.effort, "Limit of the search's work, in millions of multiply-adds")
          ->type_name("N")
          ->check(number_between(1, 1e12));
  CLI::Option* threshold = command
                               ->add_option("--threshold", o.threshold,
                                            "Where no exact formula is found, leave out edges with a smaller score")
                               ->type_name("SHARE")
                               ->check(number_between(0, 1));
  command->add_option("--functions", o.functions, "Compare edges with these functions only")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  const auto list = [&](const char* name, std::vector<std::string>& to, const char* type, const char* text) {
    command->add_option(name, to, text)->type_name(type)->allow_extra_args(false);
  };
  list("--define", o.define, "NAME=EXPRESSION", "Add a function of x to the library; repeatable");
  list("--forbid", o.forbid, "[EDGE ]NAME",
       "Never use this function or what is made of it, or not on one edge, such as 0.1.2; repeatable");
  list("--fix", o.fix, "EDGE NAME", "Set one edge, such as 0.1.2, to this function; repeatable");
  command->add_flag("--again", o.again, "Search again even if the run has a stored formula");
  add_exec_options(*command, flags->exec);
  add_output_options(*command, choice.flags);
  command->footer("Examples:\n  gradloom formula runs/mine\n  gradloom formula runs/mine --effort 300000 --json");
  command->callback([flags, effort, threshold, &choice] {
    // A stored formula was found with other limits.
    flags->options.again |= effort->count() > 0 || threshold->count() > 0;
    choice.who = Who::all_ranks;
    choice.run = [flags](const Output& out) { return formula(out, *flags); };
  });
}

}  // namespace gradloom::cli
