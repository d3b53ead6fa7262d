#include <fmt/format.h>
#include <sys/resource.h>

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
#include "gradloom/models/graph/network.h"

namespace gradloom::cli {
namespace {

int run_bench(const Output& out, app::BenchGraphOptions o) {
  if (o.threads == 0) o.threads = std::max(1u, std::thread::hardware_concurrency());
  o.allocated_bytes = allocated_bytes;
  nlohmann::json r = app::bench_graph(o).or_throw();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  r["peak_rss_bytes"] = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
  const auto cell = [&](const char* key) { return fmt::format("{:.4g}", r[key].get<double>()); };
  out.print(fmt::format("{}  {} of {} ({}), degree {}, {}, {}\n",
                        out.paint(Paint::bold, fmt::format("{} of {}", counted(o.depth, "layer"), o.layers)),
                        counted(o.graphs, "graph"), counted(o.nodes, "node"), o.kind, o.degree,
                        counted(o.features, "feature"), counted(o.threads, "thread")));
  out.print_rows({{"forward, ms", cell("forward_ms")},
                  {"train step (Adam), ms", cell("train_step_ms")},
                  {"  on one thread", cell("one_thread_train_step_ms")},
                  {"  scalar reference", cell("sequential_train_step_ms")},
                  {"GFLOP/s", cell("gflops")},
                  {"GB/s of the gathers", cell("gbytes_per_s")},
                  {"bytes per edge", cell("bytes_per_edge")},
                  {"peak memory, bytes", cell("peak_rss_bytes")},
                  {"memory, two threads over one", cell("bandwidth_ratio")},
                  {"serial fraction", cell("serial_fraction")},
                  {"parallel tasks per step", cell("parallel_tasks")}});
  if (r.contains("phases")) print_phases(out, r["phases"]);
  out.result(r);
  return kDone;
}

int run_recipe(const Output& out, app::BenchGraphRecipeOptions o) {
  if (o.threads == 0) o.threads = std::max(1u, std::thread::hardware_concurrency());
  o.data_root = default_data_root();
  const nlohmann::json r = app::bench_graph_recipe(o).or_throw();
  const auto cell = [&](const char* key) { return fmt::format("{:.4g}", r[key].get<double>()); };
  out.print(fmt::format("{}  {}, {}, {}\n", out.paint(Paint::bold, o.recipe),
                        counted(r["samples"].get<std::size_t>(), "sample"),
                        counted(r["updates"].get<std::size_t>(), "update"), counted(o.threads, "thread")));
  out.print_rows({{"epoch, ms", cell("epoch_ms")},
                  {"  on one thread", cell("one_thread_epoch_ms")},
                  {"  scalar reference", cell("sequential_epoch_ms")},
                  {"serial fraction", cell("serial_fraction")},
                  {"parallel tasks per epoch", cell("parallel_tasks")}});
  if (r.contains("phases")) print_phases(out, r["phases"]);
  out.result(r);
  return kDone;
}

}  // namespace

void add_bench_graph_command(CLI::App& bench, Choice& choice) {
  CLI::App* command = bench.add_subcommand("graph", "Graph networks: forward and training step on random graphs");
  auto o = std::make_shared<app::BenchGraphOptions>();
  auto recipe = std::make_shared<app::BenchGraphRecipeOptions>();
  const auto number = [&](const char* name, std::size_t& to, const char* text, unsigned most) {
    command->add_option(name, to, text)->type_name("N")->check(CLI::Range(1u, most).description(""));
  };
  number("--nodes", o->nodes, "Nodes of each graph", 1u << 26);
  command->add_option("--degree", o->degree, "Neighbours of a node, on average")
      ->type_name("D")
      ->check(number_between(0.0, 10000.0));
  number("--features", o->features, "Features of nodes and width of layers", 4096);
  number("--depth", o->depth, "Layers", 64);
  number("--graphs", o->graphs, "Graphs of a batch", 1u << 20);
  command->add_option("--layers", o->layers, "Kind of the layers")->type_name("KIND")->check(name_in(graph::kLayers));
  command->add_option("--kind", o->kind, "Kind of the graphs")
      ->type_name("uniform|powerlaw|star")
      ->check(name_in(app::kRandomGraphs));
  add_threads_option(*command, o->threads);
  command->add_option("--seconds", o->seconds, "Time for each figure, about")
      ->type_name("S")
      ->check(number_between(0.001, 3600.0));
  auto* name = command->add_option("--recipe", recipe->recipe, "Measure an epoch of this recipe on its data instead")
                   ->type_name("NAME|FILE");
  command->add_option("--set", recipe->overrides, "Change a key of the recipe; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->needs(name);
  command->add_flag("--profile", o->profile, "Measure the time of each phase");
  add_output_options(*command, choice.flags);
  command->footer("Example:\n  gradloom bench graph --nodes 1000 --graphs 32 --layers gin --threads 2");
  command->callback([o, recipe, &choice] {
    recipe->threads = o->threads, recipe->seconds = o->seconds, recipe->profile = o->profile;
    choice.run = [o, recipe](const Output& out) {
      return recipe->recipe.empty() ? run_bench(out, *o) : run_recipe(out, *recipe);
    };
  });
}

}  // namespace gradloom::cli
