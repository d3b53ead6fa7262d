#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/ranks.h"
#include "cli/text.h"
#include "gradloom/app/circuit/jobs.h"
#include "gradloom/app/run/open.h"

namespace gradloom::cli {
namespace {

struct RunCircuitFlags {
  app::RunCircuitOptions options;
  std::string circuit, pattern, out, boundary, minimise = "own";
};

int run_circuit(const Output& out, RunCircuitFlags flags) {
  app::RunCircuitOptions& o = flags.options;
  o.circuit = flags.circuit;
  o.pattern = flags.pattern;
  o.out = flags.out;
  app::refuse_overwriting_inputs(flags.out, flags.circuit, default_data_root(), std::span(&o.pattern, 1)).or_throw();
  if (!flags.boundary.empty())
    o.boundary = value_of<circuit::Boundary>(circuit::kBoundaries, flags.boundary, "--boundary").or_throw();
  o.minimiser = value_of<app::Minimiser>(app::kMinimisers, flags.minimise, "--minimise").or_throw();
  o.comm = out.comm();
  if (o.comm && o.threads == 0) o.threads = threads_of_this_rank();
  const auto result = app::run_circuit(o);
  if (!result && result.error().code == ErrorCode::unsupported)
    throw Failure(result.error(), "`gradloom export --observe 0` drops channels that channel 0 does not need");
  if (!result) throw Exception(result.error());
  if (!out.writes()) return kDone;
  const app::RanCircuit& r = *result;
  for (const std::string& warning : r.warnings) out.tell(fmt::format("warning: {}\n", warning));
  const bool own_size = !flags.pattern.empty() && o.width == 0 && o.height == 0;
  out.print(fmt::format("{}: {} on {} x {} cells, {}{}\n", flags.circuit, counted(o.steps, "step"), r.width, r.height,
                        r.boundary == "periodic" ? "edges joined" : "zeros around",
                        own_size ? " (the size of the pattern; --width and --height enlarge it)" : ""));
  std::vector<std::pair<std::string, std::string>> rows = {
      {"gates", fmt::format("{}, {} when run", r.gates, r.gates_run)},
      {"cells alive", fmt::format("{} at the start, {} at the end", fmt::join(r.population.start, ", "),
                                  fmt::join(r.population.end, ", "))},
      {"time", fmt::format("{}, {} billion cells per second", duration(r.seconds), figure(r.gcells_per_s))}};
  if (r.out) rows.emplace_back("written to", flags.out);
  out.print_rows(rows);
  if (!out.quiet()) out.print(r.cells);
  out.result(to_json(r));
  return kDone;
}

}  // namespace

void add_run_circuit_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("run-circuit", "Run a hard circuit on a grid of cells");
  auto flags = std::make_shared<RunCircuitFlags>();
  app::RunCircuitOptions& o = flags->options;
  add_circuit_option(*command, flags->circuit);
  CLI::Option* pattern = command->add_option("--pattern", flags->pattern, "Start with this pattern in the middle")
                             ->type_name("F.rle")
                             ->check(names_a_file);
  command->add_option("--random", o.density, "Start with random cells, of which this share is alive")
      ->type_name("DENSITY")
      ->check(number_between(0.0, 1.0))
      ->excludes(pattern);
  command->add_option("--width", o.width, "Columns; default: the pattern's")
      ->type_name("W")
      ->default_str("")
      ->check(whole_number(1, std::uint64_t{1} << 32));
  command->add_option("--height", o.height, "Rows; default: the pattern's")
      ->type_name("H")
      ->default_str("")
      ->check(whole_number(1, std::uint64_t{1} << 32));
  command->add_option("--steps", o.steps, "Number of steps")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 32).description(""));
  command->add_option("--out", flags->out, "Write the last state")->type_name("F.rle")->check(names_a_file);
  command->add_option("--boundary", flags->boundary, "periodic or zero; default: the circuit's own")
      ->type_name("EDGE")
      ->check(name_in(circuit::kBoundaries));
  command->add_option("--fire", o.fire, "Probability that a cell is updated in a step")
      ->type_name("P")
      ->check(number_between(0.0, 1.0));
  command->add_option("--seed", o.seed, "Seed of random cells and of --fire")
      ->type_name("S")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()));
  command->add_option("--minimise", flags->minimise, "own: minimise the circuit first; off: run it as it is")
      ->type_name("HOW")
      ->check(name_in(without(app::kMinimisers, app::Minimiser::yosys)));
  add_threads_option(*command, o.threads);
  add_quiet_option(*command, choice.flags);
  add_output_options(*command, choice.flags);
  command->footer(
      "Examples:\n  gradloom run-circuit game-of-life --pattern glider.rle --width 40 --height 20 --steps 60\n"
      "  gradloom run-circuit circuit.json --random 0.3 --width 900 --height 600 --steps 9");
  command->callback([flags, &choice] {
    choice.who = Who::all_ranks;
    choice.run = [flags](const Output& out) { return run_circuit(out, *flags); };
  });
}

}  // namespace gradloom::cli
