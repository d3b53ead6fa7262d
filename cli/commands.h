// The commands of the program. Each add_... defines one and its options; parsing then leaves what is to be done in the
// Choice.
#pragma once

#include <CLI/App.hpp>
#include <functional>

#include "cli/output.h"

namespace gradloom::cli {

// Who runs a command that several ranks were started with.
enum class Who { rank_0, all_ranks };

struct Choice {
  OutputFlags flags;
  Who who = Who::rank_0;
  // Returns the exit code; throws Exception (or Failure) on an error.
  std::function<int(const Output&)> run;
};

void add_train_command(CLI::App& program, Choice& choice);
void add_resume_command(CLI::App& program, Choice& choice);
void add_eval_command(CLI::App& program, Choice& choice);
void add_predict_command(CLI::App& program, Choice& choice);
void add_check_command(CLI::App& program, Choice& choice);
void add_bench_command(CLI::App& program, Choice& choice);
void add_run_circuit_command(CLI::App& program, Choice& choice);
void add_export_command(CLI::App& program, Choice& choice);
void add_bench_logic_command(CLI::App& bench, Choice& choice);  // below `bench`
void add_bench_ged_command(CLI::App& bench, Choice& choice);    // below `bench`
void add_bench_graph_command(CLI::App& bench, Choice& choice);
void add_formula_command(CLI::App& program, Choice& choice);
void add_prune_command(CLI::App& program, Choice& choice);
void add_ged_command(CLI::App& program, Choice& choice);
void add_recipes_command(CLI::App& program, Choice& choice);
void add_devices_command(CLI::App& program, Choice& choice);

}  // namespace gradloom::cli
