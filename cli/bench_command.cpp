#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "cli/allocation_counter.h"
#include "cli/bench_ranks.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/phases.h"
#include "cli/ranks.h"
#include "cli/text.h"
#include "gradloom/app/bench/bench.h"
#include "gradloom/app/circuit/jobs.h"
#include "gradloom/exec/pool.h"
#include "gradloom/kernels/full_vectors.h"
#include "gradloom/kernels/spline/spline.h"
#include "gradloom/session/options/family.h"

namespace gradloom::cli {
namespace {

struct BenchFlags {
  app::BenchKanOptions options;
  std::string base = "off", device = "cpu";
};

std::string cell(double value) { return fmt::format("{:.2f}", value); }
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

void print_bench(const Output& out, const BenchFlags& flags, const app::BenchKanReport& r) {
  const app::BenchKanOptions& o = flags.options;
  out.print(fmt::format("{}  grid {}, {} knots, degree {}, batch {}, {}, {}, base {}\n",
                        out.paint(Paint::bold, fmt::format("kan {}", fmt::join(o.widths, "-"))), o.grid, o.knots,
                        o.degree, o.batch, o.precision, counted(o.threads, "thread"), flags.base));
  const auto line = [&](std::string_view what, std::string_view us, std::string_view gflops, std::string_view share) {
    return fmt::format("  {:<24}{:>12}{:>12}{:>10}\n", what, us, gflops, share);
  };
  out.print(out.paint(Paint::dim, line("", "us", "GFLOP/s", "of peak")));
  out.print(line("forward", cell(r.forward_us), cell(r.gflops_forward), percent(r.fraction_forward)));
  out.print(line("train step (Adam)", cell(r.train_step_us), cell(r.gflops_train), percent(r.fraction_train)));
  out.print(line("  scalar reference", cell(r.sequential_train_step_us), "", ""));
  out.print(line("one sample", cell(r.single_us), "", ""));
  out.print(line("  99th percentile", cell(r.p99_single_us), "", ""));
  if (r.sparse_train_step_us)
    out.print(line("  with sparsity", cell(*r.sparse_train_step_us), "", "+" + percent(*r.sparsity_cost)));
  if (r.blas_forward_us) {
    out.print(line("dense + OpenBLAS forward", cell(*r.blas_forward_us), "", ""));
    out.print(line("dense + OpenBLAS step", cell(*r.blas_train_step_us), "", ""));
    out.print(line(*r.blas_valid ? "sgemm" : "sgemm, too slow to count", "", cell(*r.blas_sgemm_gflops), ""));
  }
  out.print(line("peak, fused", "", cell(r.peak_gflops), ""));
  out.print(line("peak, multiply and add", "", cell(r.peak_separate_gflops), ""));
  out.print_rows({{"speedup over reference", cell(r.speedup)},
                  {"speedup over one thread", cell(r.speedup_threads)},
                  {"serial fraction", percent(r.serial.serial_fraction)},
                  {"parallel tasks per step", fmt::format("{}", r.serial.parallel_tasks)},
                  {"bytes allocated per step", fmt::format("{}", r.bytes_allocated_per_step.value_or(0))},
                  {"tape, bytes", fmt::format("{}", r.tape_bytes)},
                  {"bytes of parameters", fmt::format("{}", r.parameter_bytes)}});
  print_phases(out, r.phases);
}

void print_device_bench(const Output& out, const app::BenchKanDeviceReport& r) {
  out.print(fmt::format("{}  on {}\n", out.paint(Paint::bold, "kan"), r.device));
  std::vector<std::pair<std::string, std::string>> rows{
      {"train step (Adam)", cell(r.train_step_us) + " us"},
      {"bytes to the device", fmt::format("{} per step", r.bytes_host_to_device_per_step)},
      {"bytes from the device", fmt::format("{} per step", r.bytes_device_to_host_per_step)},
      {"dispatches", fmt::format("{} per step", r.dispatches_per_step)},
      {"submits", fmt::format("{} per step", r.submits_per_step)},
      {"bytes on the device", fmt::format("{}", r.device_memory_bytes)},
      {"same bits as the cpu", r.equal_bits ? "yes" : "no"}};
  for (const auto& [kernel, us] : r.kernel_us) rows.emplace_back(kernel, fmt::format("{:.2f} us", us));
  out.print_rows(rows);
}

int bench_kan(const Output& out, BenchFlags flags) {
  app::BenchKanOptions& o = flags.options;
  if (o.widths.size() < 2) throw_invalid("--widths needs at least two widths, such as 21,64,24");
  if (o.threads == 0) o.threads = out.comm() ? threads_of_this_rank() : default_threads();
  o.base = flags.base == "on";
  o.allocated_bytes = allocated_bytes;
  o.device = open_device(out, flags.device);
  if (o.sparsity && (o.device || out.comm()))
    throw Exception(ErrorCode::unsupported,
                    "--sparsity measures the CPU and one process; leave --device and mpirun out");
  if (o.against_blas) {
    if (o.device) throw Exception(ErrorCode::unsupported, "--against-blas measures the CPU; leave --device out");
    // OpenBLAS of Debian 12 does not know recent processors by itself, and what others set may suit another processor.
    setenv("OPENBLAS_CORETYPE", kernels::full_vectors() ? "SKYLAKEX" : "HASWELL", 1);
  }
  if (out.comm()) {
    if (o.device) throw Exception(ErrorCode::unsupported, "--device cannot be used with several ranks; leave it out");
    o.comm = out.comm();
    const app::BenchKanRanksReport report = app::bench_kan_ranks(o).or_throw();
    if (!out.writes()) return kDone;
    print_ranks_bench(out, "kan", o.threads, report.step);
    out.print_rows({{"bytes by the formula", fmt::format("{:.0f} at most", report.bytes_by_formula)}});
    out.result(to_json(report));
  } else if (o.device) {
    const app::BenchKanDeviceReport report = app::bench_kan_device(o).or_throw();
    print_device_bench(out, report);
    out.result(to_json(report));
  } else {
    const app::BenchKanReport report = app::bench_kan(o).or_throw();
    print_bench(out, flags, report);
    out.result(to_json(report));
  }
  return kDone;
}

struct BenchCircuitFlags {
  app::BenchCircuitOptions options;
  std::vector<std::string> circuits;
};

int bench_circuit(const Output& out, BenchCircuitFlags flags) {
  flags.options.circuits.assign(flags.circuits.begin(), flags.circuits.end());
  const app::BenchCircuitReport report = app::bench_circuit(flags.options).or_throw();
  const auto line = [&](std::string_view what, std::string_view gates, std::string_view ms, std::string_view speed) {
    return fmt::format("  {:<32}{:>14}{:>12}{:>12}\n", what, gates, ms, speed);
  };
  out.print(fmt::format("circuits on {} x {} cells, {}\n", flags.options.width, flags.options.height,
                        counted(report.threads, "thread")));
  out.print(out.paint(Paint::dim, line("", "gates", "ms per step", "Gcells/s")));
  for (const app::CircuitSpeed& c : report.circuits)
    out.print(line(c.name, fmt::format("{} of {}", c.gates, c.gates_given), cell(c.step_ms), cell(c.gcells_per_s)));
  out.result(to_json(report));
  return kDone;
}

void add_bench_circuit_command(CLI::App& bench, Choice& choice) {
  CLI::App* command = bench.add_subcommand("circuit", "Hard circuits on a large grid, after minimisation");
  auto flags = std::make_shared<BenchCircuitFlags>();
  app::BenchCircuitOptions& o = flags->options;
  command
      ->add_option("--circuit", flags->circuits,
                   "A circuit.json or a run folder, repeatable; default: the game of life and the checkerboard")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("--width", o.width, "Columns")->type_name("W")->check(CLI::Range(1u, 1u << 31).description(""));
  command->add_option("--height", o.height, "Rows")->type_name("H")->check(CLI::Range(1u, 1u << 31).description(""));
  add_threads_option(*command, o.threads);
  add_seconds_option(*command, o.seconds, "Approximate time for each circuit");
  add_output_options(*command, choice.flags);
  command->footer(
      "Examples:\n  gradloom bench circuit --json\n  gradloom bench circuit --circuit circuit.json --threads 1");
  command->callback(
      [flags, &choice] { choice.run = [flags](const Output& out) { return bench_circuit(out, *flags); }; });
}

}  // namespace

void print_ranks_bench(const Output& out, std::string_view what, unsigned threads, const app::RanksTiming& step) {
  out.print(fmt::format("{}  on {} ranks, {} each\n", out.paint(Paint::bold, std::string(what)), step.ranks,
                        counted(threads, "thread")));
  out.print_rows({{"train step", cell(step.train_step_median_us) + " us"},
                  {"of one process",
                   fmt::format("{} us on {}", cell(step.alone_train_step_us), counted(step.ranks * threads, "thread"))},
                  {"ratio", cell(step.ratio)},
                  {"bytes sent", fmt::format("{:.0f} per step", step.bytes_sent_per_step)},
                  {"messages", fmt::format("{:.0f} per step", step.messages_per_step)},
                  {"communication", cell(step.communication_ms) + " ms per step"}});
}

bool bench_ranks(const Output& out, FunctionRef<Result<std::optional<app::BenchRanksReport>>(Comm&)> bench) {
  const std::optional<app::BenchRanksReport> report = bench(*out.comm()).or_throw();
  if (!report) {
    if (out.writes()) out.tell("ranks do not share the steps of this model: rank 0 measures, the others wait\n");
    return !out.writes();
  }
  if (!out.writes()) return true;
  print_ranks_bench(out, report->model, report->threads, report->step);
  out.result(to_json(*report));
  return true;
}

void add_bench_command(CLI::App& program, Choice& choice) {
  CLI::App* bench = program.add_subcommand("bench", "Measure speed, after checking the result");
  bench->require_subcommand(1);
  bench->footer("Examples:\n  gradloom bench kan --threads 2\n  gradloom bench logic --recipe checkerboard --json");
  add_bench_circuit_command(*bench, choice);
  add_bench_logic_command(*bench, choice);
  add_bench_ged_command(*bench, choice);
  add_bench_graph_command(*bench, choice);
  CLI::App* command = bench->add_subcommand("kan", "Spline networks: forward, training step, single samples");
  auto flags = std::make_shared<BenchFlags>();
  app::BenchKanOptions& o = flags->options;
  command->add_option("--widths", o.widths, "Widths of the input, the hidden layers and the output")
      ->type_name("A,B,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1u, 1u << 20).description(""));
  add_count_option(*command, "--grid", o.grid, "Grid intervals", 1, 1024);
  add_count_option(*command, "--degree", o.degree, "Degree of the splines", 1, 7);
  add_count_option(*command, "--batch", o.batch, "Samples per step", 1, 1u << 24);
  add_threads_option(*command, o.threads);
  command->add_option("--base", flags->base, "Add the base branch")
      ->type_name("on|off")
      ->check(CLI::IsMember({"on", "off"}).description(""));
  command->add_option("--precision", o.precision, "Precision of all numbers")
      ->type_name("TYPE")
      ->check(name_in(kPrecisions));
  command->add_option("--knots", o.knots, "Knots: at equal distances, or of each input's own")
      ->type_name("TYPE")
      ->check(name_in(kernels::spline::kKnots));
  add_seconds_option(*command, o.seconds, "Approximate time for each figure");
  command->add_flag("--profile", o.profile, "Also measure the time of each phase");
  command->add_flag("--sparsity", o.sparsity, "Also measure a step with the penalty on edges in the same run");
  command->add_flag("--against-blas", o.against_blas, "Also measure dense matrices with OpenBLAS in the same run");
  command->add_option("--device", flags->device, "cpu, gpu, auto, or a device by name or number")->type_name("NAME");
  add_output_options(*command, choice.flags);
  command->footer("Example:\n  gradloom bench kan --widths 64,64,10 --batch 256 --threads 2");
  command->callback([flags, &choice] {
    choice.who = Who::all_ranks;
    choice.run = [flags](const Output& out) { return bench_kan(out, *flags); };
  });
}

}  // namespace gradloom::cli
