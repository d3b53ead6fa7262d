#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/allocation_counter.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/phases.h"
#include "cli/text.h"
#include "gradloom/app/bench/bench.h"
#include "gradloom/app/circuit/jobs.h"
#include "gradloom/session/options/family.h"

namespace gradloom::cli {
namespace {

struct BenchFlags {
  app::BenchKanOptions options;
  std::string base = "off", precision = "float32", device = "cpu";
};

std::string cell(const nlohmann::json& r, const char* key, const char* format = "{:.2f}") {
  if (!r.contains(key) || !r[key].is_number()) return "-";
  return fmt::format(fmt::runtime(format), r[key].get<double>());
}

std::string percent(const nlohmann::json& r, const char* key) {
  if (!r.contains(key) || !r[key].is_number()) return "-";
  return fmt::format("{:.1f} %", 100 * r[key].get<double>());
}

void print_bench(const Output& out, const BenchFlags& flags, const nlohmann::json& r) {
  const app::BenchKanOptions& o = flags.options;
  out.print(fmt::format("{}  grid {}, degree {}, batch {}, {}, {}, base {}\n",
                        out.paint(Paint::bold, fmt::format("kan {}", fmt::join(o.widths, "-"))), o.grid, o.degree,
                        o.batch, flags.precision, counted(o.threads, "thread"), flags.base));
  const auto line = [&](std::string_view what, std::string_view us, std::string_view gflops, std::string_view share) {
    return fmt::format("  {:<24}{:>12}{:>12}{:>10}\n", what, us, gflops, share);
  };
  out.print(out.paint(Paint::dim, line("", "us", "GFLOP/s", "of peak")));
  out.print(line("forward", cell(r, "forward_us"), cell(r, "gflops_forward"), percent(r, "fraction_forward")));
  out.print(line("train step (Adam)", cell(r, "train_step_us"), cell(r, "gflops_train"), percent(r, "fraction_train")));
  out.print(line("  scalar reference", cell(r, "sequential_train_step_us"), "", ""));
  out.print(line("one sample", cell(r, "single_us"), "", ""));
  out.print(line("  99th percentile", cell(r, "p99_single_us"), "", ""));
  out.print(line("peak, multiply and add", "", cell(r, "peak_gflops"), ""));
  out.print(line("peak, fused", "", cell(r, "peak_fma_gflops"), ""));
  out.print_rows({{"speedup over reference", cell(r, "speedup")},
                  {"speedup over one thread", cell(r, "speedup_threads")},
                  {"serial fraction", percent(r, "serial_fraction")},
                  {"parallel tasks per step", cell(r, "parallel_tasks", "{:.0f}")},
                  {"bytes allocated per step", cell(r, "bytes_allocated_per_step", "{:.0f}")},
                  {"bytes of the tape", cell(r, "tape_bytes", "{:.0f}")},
                  {"bytes of parameters", cell(r, "parameter_bytes", "{:.0f}")}});
  if (!r.contains("phases") || !r["phases"].is_object()) return;
  print_phases(out, r["phases"]);
}

void print_device_bench(const Output& out, const nlohmann::json& r) {
  out.print(fmt::format("{}  on {}\n", out.paint(Paint::bold, "kan"), r.value("device", "")));
  std::vector<std::pair<std::string, std::string>> rows{
      {"train step (Adam)", cell(r, "train_step_us") + " us"},
      {"bytes to the device", cell(r, "bytes_host_to_device_per_step", "{:.0f} per step")},
      {"bytes from the device", cell(r, "bytes_device_to_host_per_step", "{:.0f} per step")},
      {"dispatches", cell(r, "dispatches_per_step", "{:.0f} per step")},
      {"submits", cell(r, "submits_per_step", "{:.0f} per step")},
      {"bytes on the device", cell(r, "device_memory_bytes", "{:.0f}")},
      {"same bits as the cpu", r.value("equal_bits", false) ? "yes" : "no"}};
  for (const auto& [kernel, us] : r["kernel_us"].items())
    rows.emplace_back(kernel, fmt::format("{:.2f} us", us.get<double>()));
  out.print_rows(rows);
}

int bench_kan(const Output& out, BenchFlags flags) {
  app::BenchKanOptions& o = flags.options;
  if (o.widths.size() < 2)
    throw Exception(ErrorCode::invalid_input, "--widths needs at least two widths, such as 21,64,24");
  if (o.threads == 0) o.threads = std::max(1u, std::thread::hardware_concurrency());
  o.base = flags.base == "on";
  o.double_precision =
      value_of<Precision>(kPrecisions, flags.precision, "--precision").or_throw() == Precision::float64;
  o.allocated_bytes = allocated_bytes;
  o.device = open_device(out, flags.device);
  const nlohmann::json result = app::bench_kan(o).or_throw();
  if (o.device)
    print_device_bench(out, result);
  else
    print_bench(out, flags, result);
  out.result(result);
  return kDone;
}

struct BenchCircuitFlags {
  app::BenchCircuitOptions options;
  std::vector<std::string> circuits;
};

int bench_circuit(const Output& out, BenchCircuitFlags flags) {
  flags.options.circuits.assign(flags.circuits.begin(), flags.circuits.end());
  const nlohmann::json result = app::bench_circuit(flags.options).or_throw();
  const auto line = [&](std::string_view what, std::string_view gates, std::string_view ms, std::string_view speed) {
    return fmt::format("  {:<32}{:>14}{:>12}{:>12}\n", what, gates, ms, speed);
  };
  out.print(fmt::format("circuits on {} x {} cells, {}\n", flags.options.width, flags.options.height,
                        counted(result["threads"].get<unsigned>(), "thread")));
  out.print(out.paint(Paint::dim, line("", "gates", "ms per step", "Gcells/s")));
  for (const nlohmann::json& r : result["circuits"])
    out.print(line(r["name"].get<std::string>(),
                   fmt::format("{} of {}", r["gates"].get<std::size_t>(), r["gates_given"].get<std::size_t>()),
                   cell(r, "step_ms"), cell(r, "gcells_per_s")));
  out.result(result);
  return kDone;
}

void add_bench_circuit_command(CLI::App& bench, Choice& choice) {
  CLI::App* command = bench.add_subcommand("circuit", "Hard circuits on a large grid, after minimisation");
  auto flags = std::make_shared<BenchCircuitFlags>();
  app::BenchCircuitOptions& o = flags->options;
  command
      ->add_option("--circuit", flags->circuits,
                   "A circuit.json or the folder of a run, repeatable; none: the game of life and the checkerboard")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("--width", o.width, "Columns")->type_name("W")->check(CLI::Range(1u, 1u << 31).description(""));
  command->add_option("--height", o.height, "Rows")->type_name("H")->check(CLI::Range(1u, 1u << 31).description(""));
  add_threads_option(*command, o.threads);
  command->add_option("--seconds", o.seconds, "Time for each circuit, about")
      ->type_name("S")
      ->check(number_between(0.001, 3600.0));
  add_output_options(*command, choice.flags);
  command->footer(
      "Examples:\n  gradloom bench circuit --json\n  gradloom bench circuit --circuit circuit.json --threads 1");
  command->callback(
      [flags, &choice] { choice.run = [flags](const Output& out) { return bench_circuit(out, *flags); }; });
}

}  // namespace

void add_bench_command(CLI::App& program, Choice& choice) {
  CLI::App* bench = program.add_subcommand("bench", "Measure speed, after checking the result");
  bench->require_subcommand(1);
  add_bench_circuit_command(*bench, choice);
  add_bench_logic_command(*bench, choice);
  add_bench_ged_command(*bench, choice);
  add_bench_graph_command(*bench, choice);
  CLI::App* command = bench->add_subcommand("kan", "Spline networks: forward, training step, single samples");
  auto flags = std::make_shared<BenchFlags>();
  app::BenchKanOptions& o = flags->options;
  command->add_option("--widths", o.widths, "Inputs, hidden layers, outputs")
      ->type_name("A,B,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1u, 1u << 20).description(""));
  command->add_option("--grid", o.grid, "Grid intervals")->type_name("N")->check(CLI::Range(1u, 1024u).description(""));
  command->add_option("--degree", o.degree, "Degree of the splines")
      ->type_name("N")
      ->check(CLI::Range(1u, 7u).description(""));
  command->add_option("--batch", o.batch, "Samples of a step")
      ->type_name("N")
      ->check(CLI::Range(1u, 1u << 24).description(""));
  add_threads_option(*command, o.threads);
  command->add_option("--base", flags->base, "Add the base branch")
      ->type_name("on|off")
      ->check(CLI::IsMember({"on", "off"}).description(""));
  command->add_option("--precision", flags->precision, "Type of all numbers")
      ->type_name("TYPE")
      ->check(name_in(kPrecisions));
  command->add_option("--seconds", o.seconds, "Time for each figure, about")
      ->type_name("S")
      ->check(number_between(0.001, 3600.0));
  command->add_flag("--profile", o.profile, "Measure the time of each phase");
  command->add_option("--device", flags->device, "cpu, gpu, auto, or a device by name or number")->type_name("NAME");
  add_output_options(*command, choice.flags);
  command->footer("Example:\n  gradloom bench kan --widths 64,64,10 --batch 256 --threads 2");
  command->callback([flags, &choice] { choice.run = [flags](const Output& out) { return bench_kan(out, *flags); }; });
}

}  // namespace gradloom::cli
