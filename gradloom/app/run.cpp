#include "gradloom/app/run.h"

#include "gradloom/app/experiment.h"
#include "gradloom/app/families.h"
#include "gradloom/app/recipe.h"

namespace gradloom::app {
namespace {

// Loads the data of a recipe and hands an Experiment of its family and scalar to `use`.
template <class Use>
auto with_experiment(const Config& recipe, const RunOptions& options, Use&& use)
    -> decltype(use(std::declval<Experiment<KanFamily<double>>&>())) {
  using Answer = decltype(use(std::declval<Experiment<KanFamily<double>>&>()));
  const auto run_with = [&]<class F>(std::type_identity<F>, const auto& of_family) -> Answer {
    auto family = F::load(of_family, options.data_root);
    if (!family) return with_places(family.error(), recipe, options.data_root);
    Experiment<F> experiment(recipe, std::move(*family), options);
    return use(experiment);
  };
  try {
    return with_family(recipe, [&]<class Tag>(Tag, const auto& of_family) {
      return of_family.precision == Precision::float64
                 ? run_with(std::type_identity<typename Tag::template In<double>>(), of_family)
                 : run_with(std::type_identity<typename Tag::template In<float>>(), of_family);
    });
  } catch (const Exception& e) {
    return e.error();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory,
                 "there is not enough memory for this model and batch; try a smaller train.batch"};
  }
}

Result<Config> reopen_recipe(const RunFolder& folder) {
  const std::vector<std::string> none;
  auto text = read_file(folder.recipe(), kMaxRecipeBytes);
  if (!text) return text.error();
  return parse_recipe(*text, folder.recipe().string(), none);
}

// What can be wrong about the files of an evaluation, before any of them is read.
Result<void> check_evaluation(const Config& recipe, const RunOptions& options, const EvaluateOptions& what) {
  if (!what.data.empty()) {
    if (!std::filesystem::exists(what.data))
      return Error{ErrorCode::not_found, fmt::format("there is no file {}", what.data.string())};
    if (auto r = refuse_overwriting(what.predictions, std::span(&what.data, 1)); !r) return r;
  }
  return refuse_overwriting(what.predictions, data_paths(recipe, options.data_root), InFolders::contents);
}

}  // namespace

Result<RunOutcome> train(const Config& recipe, const std::filesystem::path& path, const RunOptions& options) {
  return with_experiment(recipe, options, [&](auto& experiment) -> Result<RunOutcome> {
    // The folder comes after everything that can be wrong: a mistake in the recipe must not leave an empty run behind.
    experiment.prove();
    auto folder = RunFolder::create(path);
    if (!folder) return folder.error();
    if (auto r = write_file_atomic(folder->recipe(), recipe.to_toml()); !r) return r.error();
    experiment.start();
    return experiment.run(*folder);
  });
}

Result<RunOutcome> resume(const std::filesystem::path& path, const RunOptions& options) {
  auto folder = RunFolder::open(path, FolderAccess::write);
  if (!folder) return folder.error();
  auto recipe = reopen_recipe(*folder);
  if (!recipe) return recipe.error();
  return with_experiment(*recipe, options, [&](auto& experiment) -> Result<RunOutcome> {
    if (auto r = experiment.restore(*folder, OtherData::refuse); !r) return r.error();
    return experiment.run(*folder);
  });
}

Result<nlohmann::json> evaluate(const std::filesystem::path& path, const RunOptions& options,
                                const EvaluateOptions& what) {
  auto folder = RunFolder::open(path, FolderAccess::read);
  if (!folder) return folder.error();
  if (!std::filesystem::exists(folder->last_checkpoint()))
    return Error{ErrorCode::not_found, path.string() + " has no checkpoint yet; `gradloom resume` continues the run"};
  auto recipe = reopen_recipe(*folder);
  if (!recipe) return recipe.error();
  if (auto r = check_evaluation(*recipe, options, what); !r) return r.error();
  return with_experiment(*recipe, options, [&](auto& experiment) -> Result<nlohmann::json> {
    using Further = std::decay_t<decltype(*experiment.read_further(what.data))>;
    std::optional<Further> further;
    if (!what.data.empty()) {
      auto read = experiment.read_further(what.data);
      if (!read) return read.error();
      further = std::move(*read);
    }
    if (auto r = experiment.restore(*folder, OtherData::tell); !r) return r.error();
    nlohmann::json result = experiment.metrics();
    result["data_changed"] = experiment.data_changed();
    result["run"] = path.string();
    result["epochs"] = experiment.state().position.run_epoch;
    auto study = experiment.study();
    if (!study) return study.error();
    if (!study->is_null()) result["study"] = std::move(*study);
    if (further) {
      if (auto r = experiment.measure_further(*further, what.predictions, result); !r) return r.error();
    } else if (!what.predictions.empty()) {
      if (auto r = experiment.write_predictions(what.predictions, result); !r) return r.error();
    }
    return result;
  });
}

}  // namespace gradloom::app
