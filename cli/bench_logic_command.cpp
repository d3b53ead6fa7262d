#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/phases.h"
#include "cli/text.h"
#include "gradloom/app/bench/bench.h"

namespace gradloom::cli {
namespace {

int bench_logic(const Output& out, app::BenchLogicOptions options) {
  if (options.threads == 0) options.threads = std::max(1u, std::thread::hardware_concurrency());
  options.data_root = default_data_root();
  const nlohmann::json r = app::bench_logic(options).or_throw();
  const auto number = [&](const char* key) { return r[key].get<double>(); };
  out.print(fmt::format("{}: {} ({} evaluations for a cell), {}, {}, batch {}, {}\n",
                        out.paint(Paint::bold, options.recipe), counted(r["gates"].get<std::size_t>(), "gate"),
                        r["gate_evaluations_per_cell"].get<std::size_t>(),
                        counted(r["cells"].get<std::size_t>(), "cell"), counted(r["steps"].get<std::size_t>(), "step"),
                        r["batch"].get<std::size_t>(), counted(options.threads, "thread")));
  out.print_rows({{"update", fmt::format("{:.3g} ms", number("update_ms"))},
                  {"gate evaluation", fmt::format("{:.3g} ns", number("ns_per_gate_cell"))},
                  {"speed", fmt::format("{:.3g} of {:.3g} GFLOP/s", number("gflops"), number("peak_gflops"))},
                  {"scalar reference",
                   fmt::format("{:.3g} ms, {:.3g} times as long", number("sequential_update_ms"), number("speedup"))},
                  {"speedup over one thread", fmt::format("{:.3g}", number("speedup_threads"))},
                  {"bytes of the tape", fmt::format("{:.0f}", number("tape_bytes"))},
                  {"scratch per thread", fmt::format("{:.0f} bytes", number("scratch_bytes_per_thread"))},
                  {"serial fraction", fmt::format("{:.1f} %", 100 * number("serial_fraction"))},
                  {"parallel tasks", fmt::format("{:.0f}", number("parallel_tasks"))}});
  if (r.contains("phases")) print_phases(out, r["phases"]);
  out.result(r);
  return kDone;
}

}  // namespace

void add_bench_logic_command(CLI::App& bench, Choice& choice) {
  CLI::App* command = bench.add_subcommand("logic", "Logic automata: one update, forward and backward through time");
  auto options = std::make_shared<app::BenchLogicOptions>();
  command->add_option("--recipe", options->recipe, "A recipe of the family automaton")->type_name("NAME|FILE");
  command->add_option("--set", options->overrides, "Change a key of the recipe; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_threads_option(*command, options->threads);
  command->add_option("--seconds", options->seconds, "Time for the update, about")
      ->type_name("S")
      ->check(number_between(0.001, 3600.0));
  command->add_flag("--profile", options->profile, "Measure the time of each phase");
  add_output_options(*command, choice.flags);
  command->footer("Example:\n  gradloom bench logic --recipe checkerboard --threads 1");
  command->callback(
      [options, &choice] { choice.run = [options](const Output& out) { return bench_logic(out, *options); }; });
}

}  // namespace gradloom::cli
