#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gradloom/app/bench/bench.h"
#include "gradloom/app/bench/timing.h"
#include "gradloom/app/families/families.h"
#include "gradloom/app/families/graph/load.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/settings.h"
#include "gradloom/exec/profile.h"
#include "gradloom/session/families/graph/family.h"
#include "gradloom/train/trainer.h"

namespace gradloom::app {
namespace {

using nlohmann::json;
using Model = graph::GraphNetwork<float>;

struct RecipeSetup {
  Exec ex;
  Model model;
  TrainState<float> state;
  Trainer<Model, GraphDataset<float>> trainer;

  RecipeSetup(const GraphFamily<float>& family, ExecOptions options, Profile* profile = nullptr)
      : ex(options),
        model(family.model(0)),
        state(family.start(ex, 0)),
        trainer((ex.set_profile(profile), ex), model, family.train(), endless(family.train_options(0)), state) {}
  static TrainOptions endless(TrainOptions o) {
    o.epochs = std::uint64_t{1} << 40;
    return o;
  }
  // All updates of an epoch; nothing is validated.
  void epoch() {
    state.position.batch = 0;
    while (trainer.step()) continue;
    ++state.position.run_epoch;
  }
};

}  // namespace

Result<json> bench_graph_recipe(const BenchGraphRecipeOptions& o) try {
  auto recipe = load_recipe(o.recipe, o.overrides);
  if (!recipe) return recipe.error();
  if (recipe->string("family") != "graph")
    return Error{ErrorCode::invalid_input, fmt::format("bench graph needs a recipe of the family graph; {} is of {}",
                                                       o.recipe, recipe->string("family"))};
  const GraphOptions options = option_schema<GraphOptions>().read(*recipe);
  auto graphs = load_graph(options, o.data_root);
  if (!graphs) return with_places(graphs.error(), *recipe, o.data_root);
  const GraphFamily<float> family(options, *graphs);
  RecipeSetup fast(family, {.threads = o.threads});
  RecipeSetup reference(family, {.threads = 1, .variant = Variant::reference});
  for (int i = 0; i < 2; ++i) fast.epoch(), reference.epoch();
  if (!same_bits(fast.state.parameters, reference.state.parameters) ||
      !same_bits(fast.state.gradient, reference.state.gradient))
    return Error{ErrorCode::numeric,
                 "the fast kernels and the scalar reference differ: this build is broken, its speed means nothing"};
  const auto [epoch, one_thread] = repeat_threads(
      o.seconds, o.threads, [&] { fast.epoch(); },
      [&] { return [one = std::make_shared<RecipeSetup>(family, ExecOptions{.threads = 1})] { one->epoch(); }; });
  const Timing sequential = repeat(std::min(o.seconds, 0.3), [&] { reference.epoch(); });
  RecipeSetup threaded(family, {.threads = std::max(2u, o.threads)});
  const SerialShare share = serial_share(threaded.ex, 5, [&] { threaded.epoch(); });
  json r{{"recipe", o.recipe}, {"threads", o.threads}, {"samples", family.train().size()}};
  r["updates"] = fast.trainer.batches_per_epoch();
  r["epoch_ms"] = epoch.fastest * 1e-3, r["median_epoch_ms"] = epoch.median * 1e-3;
  r["one_thread_epoch_ms"] = one_thread.fastest * 1e-3;
  r["speedup_threads"] = one_thread.fastest / epoch.fastest;
  r["sequential_epoch_ms"] = sequential.fastest * 1e-3, r["speedup"] = sequential.fastest / epoch.fastest;
  r["serial_fraction"] = share.fraction, r["parallel_tasks"] = share.tasks;
  r["tape_bytes"] = fast.trainer.tape_bytes();
  if (o.profile) {
    Profile profile(o.threads);
    RecipeSetup profiled(family, {.threads = o.threads}, &profile);
    r["phases"] = phases_of(profile, 20, [&] { profiled.epoch(); });
  }
  return r;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
