#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/bench_ranks.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/phases.h"
#include "cli/ranks.h"
#include "cli/text.h"
#include "gradloom/app/bench/bench.h"
#include "gradloom/exec/pool.h"

namespace gradloom::cli {
namespace {

int bench_logic(const Output& out, app::BenchRecipeOptions options) {
  if (options.threads == 0) options.threads = out.comm() ? threads_of_this_rank() : default_threads();
  options.data_root = default_data_root();
  if (out.comm() && bench_ranks(out, [&](Comm& comm) {
        options.comm = &comm;
        return app::bench_logic_ranks(options);
      }))
    return kDone;
  const app::BenchLogicReport r = app::bench_logic(options).or_throw();
  out.print(fmt::format("{}: {} ({} evaluations for a cell), {}, {}, batch {}, {}\n",
                        out.paint(Paint::bold, options.recipe), counted(r.gates, "gate"), r.gate_evaluations_per_cell,
                        counted(r.cells, "cell"), counted(r.steps, "step"), r.batch,
                        counted(options.threads, "thread")));
  out.print_rows(
      {{"update", fmt::format("{:.3g} ms", r.update_ms)},
       {"gate evaluation", fmt::format("{:.3g} ns", r.ns_per_gate_cell)},
       {"speed", fmt::format("{:.3g} of {:.3g} GFLOP/s", r.gflops, r.peak_gflops)},
       {"scalar reference", fmt::format("{:.3g} ms, {:.3g} times as long", r.sequential_update_ms, r.speedup)},
       {"speedup over one thread", fmt::format("{:.3g}", r.speedup_threads)},
       {"tape, bytes", fmt::format("{}", r.tape_bytes)},
       {"scratch per thread", fmt::format("{} bytes", r.scratch_bytes_per_thread)},
       {"serial fraction", fmt::format("{:.1f} %", 100 * r.serial.serial_fraction)},
       {"parallel tasks", fmt::format("{}", r.serial.parallel_tasks)}});
  print_phases(out, r.phases);
  out.result(to_json(r));
  return kDone;
}

}  // namespace

void add_bench_logic_command(CLI::App& bench, Choice& choice) {
  CLI::App* command = bench.add_subcommand("logic", "Logic automata: one update, forward and backward through time");
  auto options = std::make_shared<app::BenchRecipeOptions>();
  options->recipe = "checkerboard";
  options->seconds = 2.0;
  command->add_option("--recipe", options->recipe, "A recipe of the family automaton")->type_name("NAME|FILE");
  add_set_option(*command, options->overrides);
  add_threads_option(*command, options->threads);
  add_seconds_option(*command, options->seconds, "Approximate time for the update");
  command->add_flag("--profile", options->profile, "Also measure the time of each phase");
  add_output_options(*command, choice.flags);
  command->footer("Example:\n  gradloom bench logic --recipe checkerboard --threads 1");
  command->callback([options, &choice] {
    choice.who = Who::all_ranks;
    choice.run = [options](const Output& out) { return bench_logic(out, *options); };
  });
}

}  // namespace gradloom::cli
