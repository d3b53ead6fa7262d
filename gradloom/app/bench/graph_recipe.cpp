#include <fmt/format.h>

#include "gradloom/app/bench/ranks.h"
#include "gradloom/app/bench/timing.h"
#include "gradloom/app/families/families.h"
#include "gradloom/app/families/graph/load.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/settings.h"
#include "gradloom/session/families/graph/family.h"

namespace gradloom::app {
namespace {

GraphFamily<float> load_benched_graphs(const BenchRecipeOptions& o) {
  const Config recipe = load_recipe(o.recipe, o.overrides).or_throw();
  if (recipe.string("family") != "graph")
    throw_invalid(
        fmt::format("bench graph needs a recipe of the family graph; {} is of {}", o.recipe, recipe.string("family")));
  const GraphOptions options = option_schema<GraphOptions>().read(recipe);
  auto graphs = load_graph(options, o.data_root);
  if (!graphs) throw Exception(with_places(graphs.error(), recipe, o.data_root));
  return GraphFamily<float>(options, *graphs);
}

auto make_recipe_training(const GraphFamily<float>& family, const ExecOptions& exec, Profile* profile,
                          Comm* comm = nullptr) {
  TrainOptions train = family.train_options(0);
  train.epochs = kEndless;
  train.comm = comm;
  return std::make_unique<BenchTraining<graph::GraphNetwork<float>, GraphDataset<float>>>(
      exec, profile, family.model(0), family.train(), train, family.start(Exec({.threads = 1}), 0));
}

// All updates of an epoch; nothing is validated.
constexpr auto kTrainEpoch = [](auto& training) {
  training.state.position.batch = 0;
  while (training.trainer.step()) continue;
  ++training.state.position.run_epoch;
};

}  // namespace

Result<std::optional<BenchRanksReport>> bench_graph_recipe_ranks(const BenchRecipeOptions& o) try {
  const GraphFamily<float> family = load_benched_graphs(o);
  const auto model = family.model(0);
  if (!ranks_can_share(model)) return std::optional<BenchRanksReport>();
  const auto make = [&](const ExecOptions& exec, Profile* profile, Comm* comm) {
    return make_recipe_training(family, exec, profile, comm);
  };
  const auto updates = make({.threads = 1}, nullptr, nullptr)->trainer.batches_per_epoch();
  BenchRanksReport r{o.recipe, o.threads};
  r.step = time_ranks(*o.comm, o.threads, o.seconds, static_cast<double>(updates), make, kTrainEpoch);
  r.parameter_bytes = model.parameters().flat_size() * sizeof(float);
  return std::optional(std::move(r));
} catch (const Exception& e) {
  return e.error();
}

Result<BenchGraphRecipeReport> bench_graph_recipe(const BenchRecipeOptions& o) try {
  const GraphFamily<float> family = load_benched_graphs(o);
  const auto make = [&](const ExecOptions& exec, Profile* profile) {
    return make_recipe_training(family, exec, profile);
  };
  TrainingPair pair(o.threads, make, kTrainEpoch);
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
  r.serial = serial_share(o.threads, 5, make, kTrainEpoch);
  r.tape_bytes = pair.fast().trainer.tape_bytes();
  if (o.profile) r.phases = phases_of(o.threads, 20, make, kTrainEpoch);
  return r;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
