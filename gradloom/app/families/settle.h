// Settings that a recipe leaves to its table (model.size = "auto"): candidates are trained and compared on rows that
// are held out.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <span>

#include "gradloom/app/families/families.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/settings.h"
#include "gradloom/data/split.h"
#include "gradloom/session/rows.h"

namespace gradloom::app {

// Tables of up to so many rows are small: candidates are compared on folds.
inline constexpr std::size_t kSmallTable = 2000, kFewRows = 20, kFiveFolds = 500;
// Folds that candidates are compared on; 0: the validation part decides.
std::size_t suitable_folds(std::size_t rows);

// Which rows train in the end: all but those for testing, or what a validation part leaves.
enum class TrainingRows { all, without_validation };
// drawn: options say which fraction validates; given: they are there whatever the options say, and decide alone.
enum class ValidationRows { drawn, given };

// Keys of a recipe and their values, as `--set` has them, without those that the recipe sets itself.
class OpenKeys {
 public:
  explicit OpenKeys(const Config& recipe) : recipe_(recipe) {}
  void set(const char* key, const std::string& value);
  // A few held-out rows would choose an epoch by chance: training on all rows keeps the last one.
  void train_on(TrainingRows rows);
  const std::vector<std::string>& overrides() const { return overrides_; }

 private:
  const Config& recipe_;
  std::vector<std::string> overrides_;
};

// What is compared for a table.
struct SizeChoice {
  std::vector<nlohmann::json> candidates;  // from the smallest; what `settled` shows of each, without its error
  std::function<std::vector<std::string>(std::size_t candidate, TrainingRows rows)> overrides;
  std::vector<const char*> keys;    // a recipe that sets all of them leaves nothing to choose
  const char* error_name = "loss";  // in `settled`
  double (*error)(const PartMetrics& held_out) = [](const PartMetrics& m) { return m.loss; };
};

template <class O>
struct SettleCall {
  const Config& recipe;
  // The rows as these options split them.
  std::function<Result<RowSplits>(const O& options)> parts_of;
  ValidationRows given;
  const SessionOptions& settings;
  std::function<SizeChoice(const RowSplits& parts)> choice;
};

namespace settle_detail {

struct Comparison {
  RowSplits parts;
  std::size_t rows, folds;
  TrainingRows training;
};

// The error on parts.validation after training on parts.train; infinite when it diverges.
using ErrorOf = std::function<double(const std::vector<std::string>& overrides, RowSplits parts)>;
Result<std::optional<SettledRecipe>> choose(const Config& recipe, const Comparison& what, const SizeChoice& choice,
                                            const SessionOptions& settings, std::uint64_t seed,
                                            const ErrorOf& error_of);

}  // namespace settle_detail

// Trains each candidate on the folds, or on the training part, and takes the one with the lowest mean error on what it
// was not trained on; a larger one must be 1 % better. Deterministic. Keys that the recipe sets stay. Nothing, when
// model.size is not "auto".
template <template <class> class F, class O>
Result<std::optional<SettledRecipe>> settle_size(const SettleCall<O>& call) {
  const Config& recipe = call.recipe;
  const O asked = option_schema<O>().read(recipe);
  if (asked.model.size != SizePolicy::automatic) return std::optional<SettledRecipe>();
  if (!recipe.tables("stage").empty())
    return Error{ErrorCode::invalid_input,
                 "model.size = \"auto\" needs a recipe without stages; remove them, or set model.size = \"given\""};
  const auto read = [&](const O& options) {
    const ReadingData reading(call.settings);
    return call.parts_of(options);
  };
  auto parts = read(asked);
  if (!parts) return parts.error();
  const std::size_t rows = parts->train.size() + (parts->validation ? parts->validation->size() : 0);
  const std::size_t folds = call.given == ValidationRows::given ? 0 : suitable_folds(rows);
  const bool few = rows < kFewRows && call.given == ValidationRows::drawn && !recipe.was_set("data.validation");
  const TrainingRows training = folds > 0 || few ? TrainingRows::all : TrainingRows::without_validation;
  if (training == TrainingRows::all && !recipe.was_set("data.validation")) {
    O whole = asked;
    whole.data.validation = 0.0;
    parts = read(whole);
    if (!parts) return parts.error();
  }
  const settle_detail::Comparison what{std::move(*parts), rows, folds, training};
  const SizeChoice choice = call.choice(what.parts);
  const auto error_of = [&](std::vector<std::string> overrides, RowSplits held_out) {
    constexpr double kDiverged = std::numeric_limits<double>::infinity();
    overrides.push_back("model.size=\"given\"");
    const Config settled = parse_recipe(recipe.to_toml(), "the recipe", overrides).or_throw();
    SessionOptions quiet = call.settings;
    quiet.log = {};
    quiet.profile = false;
    held_out.test.reset();
    try {
      std::unique_ptr<Session> session = make_session<F>(option_schema<O>().read(settled), held_out, quiet);
      session->preflight();
      SessionListener nobody;
      if (session->start() == TrainEnd::stopped || train(*session, nobody) == TrainEnd::stopped) return kDiverged;
      const double error = choice.error(*session->metrics().validation);
      return std::isfinite(error) ? error : kDiverged;
    } catch (const Exception& e) {
      if (e.code() != ErrorCode::numeric) throw;
      return kDiverged;
    }
  };
  return settle_detail::choose(recipe, what, choice, call.settings, asked.train.seed, error_of);
}

}  // namespace gradloom::app
