#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gradloom/app/bench/bench.h"
#include "gradloom/app/bench/timing.h"
#include "gradloom/app/families/automaton/automaton.h"
#include "gradloom/app/families/families.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/settings.h"
#include "gradloom/exec/profile.h"
#include "gradloom/kernels/peak/peak.h"
#include "gradloom/session/families/automaton/family.h"
#include "gradloom/train/trainer.h"

namespace gradloom::app {
namespace {

using nlohmann::json;

// Additions and multiplications of one gate and cell in an update: the value twice (forward, and again for backward),
// the gradients of both inputs, four sums.
constexpr double kFlops = 2 * 6 + 8 + 8;

struct LogicSetup {
  Exec ex;
  logic::Automaton<float> model;
  TrainState<float> state;
  Trainer<logic::Automaton<float>, GridDataset<float>> trainer;

  LogicSetup(const AutomatonFamily<float>& family, ExecOptions options, Profile* profile = nullptr)
      : ex(options),
        model(family.model(family.stages() - 1)),  // the last stage: what the recipe is about
        state(family.start(ex, 0)),
        trainer((ex.set_profile(profile), ex), model, family.train(), family.train_options(0), state) {}
  void step() {
    state.position.batch = 0;
    trainer.step();
  }
};

}  // namespace

Result<json> bench_logic(const BenchLogicOptions& o) try {
  auto recipe = load_recipe(o.recipe, o.overrides);
  if (!recipe) return recipe.error();
  if (recipe->string("family") != "automaton")
    return Error{ErrorCode::invalid_input,
                 fmt::format("bench logic needs a recipe of the family automaton; {} is of {}", o.recipe,
                             recipe->string("family"))};
  // Every cell is computed, unless asked otherwise: dead ones would make the figures depend on the draw.
  std::vector<std::string> overrides = {"data.damage=0"};
  overrides.insert(overrides.end(), o.overrides.begin(), o.overrides.end());
  recipe = load_recipe(o.recipe, overrides);
  if (!recipe) return recipe.error();
  const AutomatonOptions options = option_schema<AutomatonOptions>().read(*recipe);
  auto task = load_automaton(options, o.data_root);
  if (!task) return with_places(task.error(), *recipe, o.data_root);
  const AutomatonFamily<float> family(options, std::move(*task));
  LogicSetup fast(family, {.threads = o.threads});
  LogicSetup reference(family, {.threads = 1, .variant = Variant::reference});
  for (int i = 0; i < 2; ++i) {
    fast.step();
    reference.step();
  }
  if (!same_bits(fast.state.parameters, reference.state.parameters) ||
      !same_bits(fast.state.gradient, reference.state.gradient))
    return Error{ErrorCode::numeric,
                 "the fast kernels and the scalar reference differ: this build is broken, its speed means nothing"};
  const auto peak_before = kernels::peak::measure_peak(false);
  const auto [update, one_thread] = repeat_threads(
      o.seconds, o.threads, [&] { fast.step(); },
      [&] { return [one = std::make_shared<LogicSetup>(family, ExecOptions{.threads = 1})] { one->step(); }; });
  const auto peak_after = kernels::peak::measure_peak(false);
  const Timing sequential = repeat(std::min(o.seconds, 0.5), [&] { reference.step(); });

  const logic::AutomatonOptions& a = fast.model.options();
  const std::size_t asked = family.train_options(0).batch, batch = asked == 0 ? family.train().size() : asked;
  // Cells that rest are not computed.
  const double evaluations = static_cast<double>(fast.model.gate_evaluations()) *
                             static_cast<double>(fast.model.cells() * a.steps * batch) * a.fire_probability;
  LogicSetup threaded(family, {.threads = std::max(2u, o.threads)});
  const SerialShare share = serial_share(threaded.ex, 5, [&] { threaded.step(); });
  json r;
  r["recipe"] = o.recipe;
  r["threads"] = o.threads;
  r["gates"] = fast.model.gates();
  r["gate_evaluations_per_cell"] = fast.model.gate_evaluations();
  r["cells"] = fast.model.cells();
  r["steps"] = a.steps;
  r["batch"] = batch;
  r["update_ms"] = update.fastest * 1e-3;
  r["update_median_ms"] = update.median * 1e-3;
  r["ns_per_gate_cell"] = update.fastest * 1e3 / evaluations;
  r["gflops"] = kFlops * evaluations / update.fastest * 1e-3;
  r["peak_gflops"] = std::max(peak_before.mul_add_gflops, peak_after.mul_add_gflops);
  r["sequential_update_ms"] = sequential.fastest * 1e-3;
  r["speedup"] = sequential.fastest / update.fastest;
  r["one_thread_update_ms"] = one_thread.fastest * 1e-3;
  r["speedup_threads"] = one_thread.fastest / update.fastest;
  r["tape_bytes"] = fast.trainer.tape_bytes();
  r["scratch_bytes_per_thread"] = fast.trainer.tape().scratch_bytes_per_thread();
  r["serial_fraction"] = share.fraction;
  r["parallel_tasks"] = share.tasks;
  if (o.profile) {
    Profile profile(o.threads);
    LogicSetup profiled(family, {.threads = o.threads}, &profile);
    r["phases"] = phases_of(profile, 10, [&] { profiled.step(); });
  }
  return r;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
