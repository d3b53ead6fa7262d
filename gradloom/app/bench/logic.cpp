#include <fmt/format.h>

#include <algorithm>

#include "gradloom/app/bench/ranks.h"
#include "gradloom/app/bench/timing.h"
#include "gradloom/app/families/automaton/automaton.h"
#include "gradloom/app/families/families.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/settings.h"
#include "gradloom/kernels/peak/peak.h"
#include "gradloom/session/families/automaton/family.h"

namespace gradloom::app {
namespace {

// Additions and multiplications of one gate and cell in an update: the value twice (forward, and again for backward),
// the gradients of both inputs, four sums.
constexpr double kFlops = 2 * 6 + 8 + 8;

AutomatonFamily<float> load_benched(const BenchRecipeOptions& o) {
  Config recipe = load_recipe(o.recipe, o.overrides).or_throw();
  if (recipe.string("family") != "automaton")
    throw_invalid(fmt::format("bench logic needs a recipe of the family automaton; {} is of {}", o.recipe,
                              recipe.string("family")));
  // Every cell is computed, unless asked otherwise: dead ones would make the figures depend on the draw.
  std::vector<std::string> overrides = {"data.damage=0"};
  overrides.insert(overrides.end(), o.overrides.begin(), o.overrides.end());
  recipe = load_recipe(o.recipe, overrides).or_throw();
  const AutomatonOptions options = option_schema<AutomatonOptions>().read(recipe);
  auto task = load_automaton(options, o.data_root);
  if (!task) throw Exception(with_places(task.error(), recipe, o.data_root));
  return AutomatonFamily<float>(options, std::move(*task));
}

auto make_automaton_training(const AutomatonFamily<float>& family, const ExecOptions& exec, Profile* profile,
                             Comm* comm = nullptr) {
  TrainOptions train = family.train_options(0);
  train.comm = comm;
  // The last stage: what the recipe is about.
  return std::make_unique<BenchTraining<logic::Automaton<float>, GridDataset<float>>>(
      exec, profile, family.model(family.stages() - 1), family.train(), train, family.start(Exec({.threads = 1}), 0));
}

}  // namespace

Result<std::optional<BenchRanksReport>> bench_logic_ranks(const BenchRecipeOptions& o) try {
  const AutomatonFamily<float> family = load_benched(o);
  const auto model = family.model(family.stages() - 1);
  if (!ranks_can_share(model)) return std::optional<BenchRanksReport>();
  const auto make = [&](const ExecOptions& exec, Profile* profile, Comm* comm) {
    return make_automaton_training(family, exec, profile, comm);
  };
  BenchRanksReport r{o.recipe, o.threads};
  r.step = time_ranks(*o.comm, o.threads, o.seconds, 1.0, make, [](auto& training) { training.step(); });
  r.parameter_bytes = model.parameters().flat_size() * sizeof(float);
  return std::optional(std::move(r));
} catch (const Exception& e) {
  return e.error();
}

Result<BenchLogicReport> bench_logic(const BenchRecipeOptions& o) try {
  const AutomatonFamily<float> family = load_benched(o);
  const auto make = [&](const ExecOptions& exec, Profile* profile) {
    return make_automaton_training(family, exec, profile);
  };
  const auto step = [](auto& training) { training.step(); };
  TrainingPair pair(o.threads, make, step);
  auto& fast = pair.fast();
  const auto peak_before = kernels::peak::measure_peak(false);
  const auto [update, one_thread] = pair.time(o.seconds);
  const auto peak_after = kernels::peak::measure_peak(false);
  const Timing sequential = pair.time_reference(std::min(o.seconds, 0.5));

  const logic::AutomatonOptions& a = fast.model.options();
  const std::size_t asked = family.train_options(0).batch, batch = asked == 0 ? family.train().size() : asked;
  // Cells that rest are not computed.
  const double evaluations = static_cast<double>(fast.model.gate_evaluations()) *
                             static_cast<double>(fast.model.cells() * a.steps * batch) * a.fire_probability;
  BenchLogicReport r;
  r.recipe = o.recipe;
  r.threads = o.threads;
  r.gates = fast.model.gates();
  r.gate_evaluations_per_cell = fast.model.gate_evaluations();
  r.cells = fast.model.cells();
  r.steps = a.steps;
  r.batch = batch;
  r.update_ms = update.fastest * 1e-3;
  r.update_median_ms = update.median * 1e-3;
  r.ns_per_gate_cell = update.fastest * 1e3 / evaluations;
  r.gflops = kFlops * evaluations / update.fastest * 1e-3;
  r.peak_gflops = std::max(peak_before.fma_gflops, peak_after.fma_gflops);
  r.sequential_update_ms = sequential.fastest * 1e-3;
  r.speedup = sequential.fastest / update.fastest;
  r.one_thread_update_ms = one_thread.fastest * 1e-3;
  r.speedup_threads = one_thread.fastest / update.fastest;
  r.tape_bytes = fast.trainer.tape_bytes();
  r.scratch_bytes_per_thread = fast.trainer.tape().scratch_bytes_per_thread();
  r.serial = serial_share(o.threads, 5, make, step);
  if (o.profile) r.phases = phases_of(o.threads, 10, make, step);
  return r;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
