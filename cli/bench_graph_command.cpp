#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/allocation_counter.h"
#include "cli/bench_ranks.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/phases.h"
#include "cli/ranks.h"
#include "cli/text.h"
#include "gradloom/app/bench/bench.h"
#include "gradloom/exec/pool.h"
#include "gradloom/models/graph/network.h"

namespace gradloom::cli {
namespace {

int run_bench(const Output& out, app::BenchGraphOptions o) {
  if (o.threads == 0) o.threads = out.comm() ? threads_of_this_rank() : default_threads();
  if (out.comm() && bench_ranks(out, [&](Comm& comm) {
        o.comm = &comm;
        return app::bench_graph_ranks(o);
      }))
    return kDone;
  o.allocated_bytes = allocated_bytes;
  app::BenchGraphReport r = app::bench_graph(o).or_throw();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  r.peak_rss_bytes = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
  out.print(fmt::format("{}  {} of {} ({}), degree {}, {}, {}\n",
                        out.paint(Paint::bold, fmt::format("{} of {}", counted(o.depth, "layer"), o.layers)),
                        counted(o.graphs, "graph"), counted(o.nodes, "node"), o.kind, o.degree,
                        counted(o.features, "feature"), counted(o.threads, "thread")));
  out.print_rows({{"forward, ms", figure(r.forward_ms)},
                  {"train step (Adam), ms", figure(r.train_step_ms)},
                  {"  on one thread", figure(r.one_thread_train_step_ms)},
                  {"  scalar reference", figure(r.sequential_train_step_ms)},
                  {"GFLOP/s", figure(r.gflops)},
                  {"GB/s of the gathers", figure(r.gbytes_per_s)},
                  {"bytes per edge", figure(r.bytes_per_edge)},
                  {"peak memory, bytes", figure(static_cast<double>(*r.peak_rss_bytes))},
                  {"memory, two threads over one", figure(r.bandwidth_ratio)},
                  {"serial fraction", figure(r.serial.serial_fraction)},
                  {"parallel tasks per step", figure(static_cast<double>(r.serial.parallel_tasks))}});
  print_phases(out, r.phases);
  out.result(to_json(r));
  return kDone;
}

int run_recipe(const Output& out, app::BenchRecipeOptions o) {
  if (o.threads == 0) o.threads = out.comm() ? threads_of_this_rank() : default_threads();
  o.data_root = default_data_root();
  if (out.comm() && bench_ranks(out, [&](Comm& comm) {
        o.comm = &comm;
        return app::bench_graph_recipe_ranks(o);
      }))
    return kDone;
  const app::BenchGraphRecipeReport r = app::bench_graph_recipe(o).or_throw();
  out.print(fmt::format("{}  {}, {}, {}\n", out.paint(Paint::bold, o.recipe), counted(r.samples, "sample"),
                        counted(r.updates, "update"), counted(o.threads, "thread")));
  out.print_rows({{"epoch, ms", figure(r.epoch_ms)},
                  {"  on one thread", figure(r.one_thread_epoch_ms)},
                  {"  scalar reference", figure(r.sequential_epoch_ms)},
                  {"serial fraction", figure(r.serial.serial_fraction)},
                  {"parallel tasks per epoch", figure(static_cast<double>(r.serial.parallel_tasks))}});
  print_phases(out, r.phases);
  out.result(to_json(r));
  return kDone;
}

}  // namespace

void add_bench_graph_command(CLI::App& bench, Choice& choice) {
  CLI::App* command = bench.add_subcommand("graph", "Graph networks: forward and training step on random graphs");
  auto o = std::make_shared<app::BenchGraphOptions>();
  auto recipe = std::make_shared<app::BenchRecipeOptions>();
  add_count_option(*command, "--nodes", o->nodes, "Nodes of each graph", 1, 1u << 26);
  command->add_option("--degree", o->degree, "Average number of neighbours of a node")
      ->type_name("D")
      ->check(number_between(0.0, 10000.0));
  add_count_option(*command, "--features", o->features, "Number of node features and width of the layers", 1, 4096);
  add_count_option(*command, "--depth", o->depth, "Layers", 1, 64);
  add_count_option(*command, "--graphs", o->graphs, "Graphs per batch", 1, 1u << 20);
  command->add_option("--layers", o->layers, "Kind of the layers")->type_name("KIND")->check(name_in(graph::kLayers));
  command->add_option("--kind", o->kind, "Kind of the graphs")
      ->type_name("uniform|powerlaw|star")
      ->check(name_in(app::kRandomGraphs));
  add_threads_option(*command, o->threads);
  add_seconds_option(*command, o->seconds, "Approximate time for each figure");
  auto* name = command
                   ->add_option("--recipe", recipe->recipe,
                                "Measure an epoch of this recipe on its data instead of random graphs")
                   ->type_name("NAME|FILE");
  add_set_option(*command, recipe->overrides)->needs(name);
  command->add_flag("--profile", o->profile, "Also measure the time of each phase");
  add_output_options(*command, choice.flags);
  command->footer("Example:\n  gradloom bench graph --nodes 1000 --graphs 32 --layers gin --threads 2");
  command->callback([o, recipe, &choice] {
    recipe->threads = o->threads, recipe->seconds = o->seconds, recipe->profile = o->profile;
    choice.who = Who::all_ranks;
    choice.run = [o, recipe](const Output& out) {
      return recipe->recipe.empty() ? run_bench(out, *o) : run_recipe(out, *recipe);
    };
  });
}

}  // namespace gradloom::cli
