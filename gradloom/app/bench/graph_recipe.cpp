#include <fmt/format.h>

#include "gradloom/app/bench/timing.h"
#include "gradloom/app/families/families.h"
#include "gradloom/app/families/graph/load.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/settings.h"
#include "gradloom/session/families/graph/family.h"

namespace gradloom::app {
Result<BenchGraphRecipeReport> bench_graph_recipe(const BenchRecipeOptions& o) try {
  auto recipe = load_recipe(o.recipe, o.overrides);
  if (!recipe) return recipe.error();
  if (recipe->string("family") != "graph")
    return Error{ErrorCode::invalid_input, fmt::format("bench graph needs a recipe of the family graph; {} is of {}",
                                                       o.recipe, recipe->string("family"))};
  const GraphOptions options = option_schema<GraphOptions>().read(*recipe);
  auto graphs = load_graph(options, o.data_root);
  if (!graphs) return with_places(graphs.error(), *recipe, o.data_root);
  const GraphFamily<float> family(options, *graphs);
  TrainOptions train = family.train_options(0);
  train.epochs = kEndless;
  const auto make = [&](const ExecOptions& exec, Profile* profile) {
    return std::make_unique<BenchTraining<graph::GraphNetwork<float>, GraphDataset<float>>>(
        exec, profile, family.model(0), family.train(), train, family.start(Exec({.threads = 1}), 0));
  };
  // All updates of an epoch; nothing is validated.
  const auto train_epoch = [](auto& training) {
    training.state.position.batch = 0;
    while (training.trainer.step()) continue;
    ++training.state.position.run_epoch;
  };
  TrainingPair pair(o.threads, make, train_epoch);
  const auto [epoch, one_thread] = pair.time(o.seconds);
  const Timing sequential = pair.time_reference(std::min(o.seconds, 0.3));
  BenchGraphRecipeReport r;
  r.recipe = o.recipe;
  r.threads = o.threads;
  r.samples = family.train().size();
  r.updates = pair.fast().trainer.batches_per_epoch();
  r.epoch_ms = epoch.fastest * 1e-3;
  r.median_epoch_ms = epoch.median * 1e-3;
  r.one_thread_epoch_ms = one_thread.fastest * 1e-3;
  r.speedup_threads = one_thread.fastest / epoch.fastest;
  r.sequential_epoch_ms = sequential.fastest * 1e-3;
  r.speedup = sequential.fastest / epoch.fastest;
  r.serial = serial_share(o.threads, 5, make, train_epoch);
  r.tape_bytes = pair.fast().trainer.tape_bytes();
  if (o.profile) r.phases = phases_of(o.threads, 20, make, train_epoch);
  return r;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
