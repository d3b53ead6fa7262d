#include "gradloom/app/families/settle.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradloom::app {

std::size_t suitable_folds(std::size_t rows) {
  return rows < kFewRows || rows > kSmallTable ? 0 : rows <= kFiveFolds ? 5 : 3;
}

void OpenKeys::set(const char* key, const std::string& value) {
  if (!recipe_.was_set(key)) overrides_.push_back(fmt::format("{}={}", key, value));
}

void OpenKeys::train_on(TrainingRows rows) {
  if (rows != TrainingRows::all) return;
  set("data.validation", "0.0");
  set("train.keep_best", "false");
}

namespace settle_detail {
namespace {

// Nothing can be learned from these rows, or told about a size: every weight is 0.
bool weightless(const RowDataset<double>& rows, std::span<const std::uint32_t> which) {
  const auto& weight = rows.parts().weight;
  return !weight.empty() && std::all_of(which.begin(), which.end(), [&](std::uint32_t i) { return weight[i] == 0; });
}

double mean_error(const std::vector<std::string>& overrides, const Comparison& what, std::uint64_t seed,
                  const ErrorOf& error_of) {
  if (what.folds == 0) return error_of(overrides, what.parts);
  const RowDataset<double>& rows = what.parts.train;
  double sum = 0.0;
  std::size_t counted = 0;
  for (std::size_t f = 0; f < what.folds; ++f) {
    const Split split = make_fold(rows.size(), what.folds, f, seed, rows.parts().label);
    if (weightless(rows, split.train) || weightless(rows, split.test)) continue;
    RowSplits part{rows.subset(split.train), rows.subset(split.test), std::nullopt, what.parts.code, {}};
    sum += error_of(overrides, std::move(part)) * static_cast<double>(split.test.size());
    counted += split.test.size();
  }
  return counted > 0 ? sum / static_cast<double>(counted) : std::numeric_limits<double>::infinity();
}

}  // namespace

Result<std::optional<SettledRecipe>> choose(const Config& recipe, const Comparison& what, const SizeChoice& choice,
                                            const SessionOptions& settings, std::uint64_t seed,
                                            const ErrorOf& error_of) {
  const std::size_t sizes = choice.candidates.size();
  // A recipe that sets all keys, or rows of which none can be held out, leave nothing to compare.
  const bool set = std::all_of(choice.keys.begin(), choice.keys.end(), [&](auto* key) { return recipe.was_set(key); });
  const bool alone = set || sizes == 1 || (what.folds == 0 && !what.parts.validation);
  if (settings.log && !alone)
    settings.log(LogLevel::info, fmt::format("choosing one of {} sizes{}", sizes,
                                             what.folds > 0 ? fmt::format(", each on {} folds", what.folds) : ""));
  nlohmann::json candidates = nlohmann::json::array();
  std::optional<std::size_t> best;
  double lowest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < sizes && !alone; ++i) {
    const double error = mean_error(choice.overrides(i, what.training), what, seed, error_of);
    if (settings.stop && *settings.stop) break;
    candidates.push_back(choice.candidates[i]);
    candidates.back()[choice.error_name] = error;
    // A larger network must be better by more than chance.
    if (!best || error < 0.99 * lowest) best = i, lowest = error;
    if (lowest == 0.0) break;
  }
  if (alone) candidates.push_back(choice.candidates.front());
  std::vector<std::string> overrides = choice.overrides(best.value_or(0), what.training);
  overrides.push_back("model.size=\"given\"");
  auto settled = parse_recipe(recipe.to_toml(), "the recipe", overrides);
  if (!settled) return settled.error();
  return std::optional<SettledRecipe>(SettledRecipe{
      std::move(*settled),
      {{"rows", what.rows}, {"folds", what.folds}, {"candidates", candidates}, {"chosen", best.value_or(0)}}});
}

}  // namespace settle_detail
}  // namespace gradloom::app
