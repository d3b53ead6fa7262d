#include "gradloom/app/families/kan/settle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "gradloom/app/recipe.h"
#include "gradloom/app/settings.h"
#include "gradloom/data/split.h"
#include "gradloom/session/families/kan/family.h"

namespace gradloom::app {
namespace {

using nlohmann::json;

// Tables of up to so many rows are small: their sizes are compared on folds.
constexpr std::size_t kSmallTable = 2000, kFewRows = 20, kFiveFolds = 500;

// The loss of a size on rows that it was not trained on; infinite when it diverges.
double held_out_loss(const KanOptions& options, RowSplits parts, const SessionOptions& settings) {
  parts.test.reset();
  SessionOptions quiet = settings;
  quiet.log = {};
  quiet.profile = false;
  try {
    std::unique_ptr<Session> session = make_session<KanFamily>(options, parts, quiet);
    session->preflight();
    SessionListener nobody;
    if (session->start() == TrainEnd::stopped || train(*session, nobody) == TrainEnd::stopped)
      return std::numeric_limits<double>::infinity();
    const Metrics metrics = session->metrics();
    const double loss = metrics.validation->loss;
    return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
  } catch (const Exception& e) {
    if (e.code() != ErrorCode::numeric) throw;
    return std::numeric_limits<double>::infinity();
  }
}

// Nothing can be learned from these rows, or told about a size: every weight is 0.
bool weightless(const RowDataset<double>& rows, std::span<const std::uint32_t> which) {
  const auto& weight = rows.parts().weight;
  return !weight.empty() && std::all_of(which.begin(), which.end(), [&](std::uint32_t i) { return weight[i] == 0; });
}

double compare(const KanOptions& options, const RowSplits& parts, std::size_t folds, const SessionOptions& settings) {
  if (folds == 0) return held_out_loss(options, parts, settings);
  double sum = 0.0;
  for (std::size_t f = 0; f < folds; ++f) {
    const Split split = make_fold(parts.train.size(), folds, f, options.train.seed, parts.train.parts().label);
    if (weightless(parts.train, split.train) || weightless(parts.train, split.test)) continue;
    RowSplits part{parts.train.subset(split.train), parts.train.subset(split.test), std::nullopt, parts.code, {}};
    sum += held_out_loss(options, std::move(part), settings) * static_cast<double>(split.test.size());
  }
  return sum / static_cast<double>(parts.train.size());
}

// Which rows train in the end: all but those for testing, or what a validation part leaves.
enum class TrainingRows { all, without_validation };

// The keys that are left to the table.
class OpenKeys {
 public:
  explicit OpenKeys(const Config& recipe) : recipe_(recipe) {}
  void set(const char* key, std::string value) {
    if (!recipe_.was_set(key)) overrides_.push_back(fmt::format("{}={}", key, value));
  }
  const std::vector<std::string>& overrides() const { return overrides_; }

 private:
  const Config& recipe_;
  std::vector<std::string> overrides_;
};

std::vector<std::string> overrides_of(const Config& recipe, const KanSize& size, std::size_t rows,
                                      TrainingRows training) {
  OpenKeys open(recipe);
  const std::size_t batch =
      recipe.was_set("train.batch") ? static_cast<std::size_t>(recipe.integer("train.batch")) : suitable_batch(rows);
  const std::uint64_t epochs =
      recipe.was_set("epochs") ? static_cast<std::uint64_t>(recipe.integer("epochs")) : suitable_epochs(rows);
  open.set("model.hidden", fmt::format("[{}]", fmt::join(size.hidden, ",")));
  open.set("model.grid", fmt::format("{}", size.grid));
  open.set("optimizer.weight_decay", fmt::format("{}", size.decay));
  open.set("train.batch", fmt::format("{}", batch));
  open.set("epochs", fmt::format("{}", epochs));
  open.set("model.refit", fmt::format("[0,{},{},{}]", epochs / 6, epochs / 2, epochs * 5 / 6));
  open.set("model.refit_inputs", "true");
  // A few rows held out would tell an epoch by chance.
  if (training == TrainingRows::all) {
    open.set("data.validation", "0.0");
    open.set("train.keep_best", "false");
  }
  return open.overrides();
}

KanOptions options_with(const Config& recipe, std::vector<std::string> overrides) {
  overrides.push_back("model.size=\"given\"");
  const Config settled = parse_recipe(recipe.to_toml(), "the recipe", overrides).or_throw();
  return option_schema<KanOptions>().read(settled);
}

}  // namespace

std::size_t suitable_batch(std::size_t rows) {
  const std::size_t batch = rows <= 1000 ? 16 : rows <= kSmallTable ? 32 : 64;
  return std::min(batch, std::max<std::size_t>(rows / 2, 1));
}

std::uint64_t suitable_epochs(std::size_t rows) { return rows <= kSmallTable ? 100 : 60; }

std::size_t suitable_folds(std::size_t rows) {
  return rows < kFewRows || rows > kSmallTable ? 0 : rows <= kFiveFolds ? 5 : 3;
}

std::vector<KanSize> sizes_to_try(std::size_t rows, std::size_t features, std::size_t outputs) {
  const std::vector<KanSize> small = {{{}, 3, 0.3}, {{8}, 3, 0.3}, {{16}, 3, 1.0}, {{8}, 5, 0.1}, {{32}, 6, 0.1}};
  const std::vector<KanSize> large = {{{16}, 5, 0.1}, {{32}, 12, 0.1}};
  std::vector<KanSize> tried;
  for (const KanSize& size : rows <= kSmallTable ? small : large) {
    std::size_t edges = 0, in = features;
    for (const std::size_t width : size.hidden) edges += in * width, in = width;
    edges += in * outputs;
    const std::size_t parameters = edges * (size.grid + 4);
    if (tried.empty() || parameters <= 10 * rows * outputs) tried.push_back(size);
  }
  return tried;
}

Result<std::optional<SettledRecipe>> settle_rows(const Config& recipe, const PartsOf& parts_of, ValidationRows given,
                                                 const SessionOptions& settings) {
  const KanOptions asked = option_schema<KanOptions>().read(recipe);
  if (asked.model.size != SizePolicy::automatic) return std::optional<SettledRecipe>();
  if (!recipe.tables("stage").empty())
    return Error{ErrorCode::invalid_input,
                 "model.size = \"auto\" chooses one stage; take the stages away, or set model.size = \"given\""};
  if (!asked.model.multiply.empty() && !recipe.was_set("model.hidden"))
    return Error{ErrorCode::invalid_input,
                 "model.multiply belongs to the layers of model.hidden, which model.size = \"auto\" would choose; set "
                 "model.hidden as well"};
  auto parts = parts_of(asked);
  if (!parts) return parts.error();
  const std::size_t rows = parts->train.size() + (parts->validation ? parts->validation->size() : 0);
  const std::size_t folds = given == ValidationRows::given ? 0 : suitable_folds(rows);
  const bool few = rows < kFewRows && given == ValidationRows::drawn && !recipe.was_set("data.validation");
  const TrainingRows training = folds > 0 || few ? TrainingRows::all : TrainingRows::without_validation;
  if (training == TrainingRows::all && !recipe.was_set("data.validation")) {
    KanOptions whole = asked;
    whole.data.validation = 0.0;
    parts = parts_of(whole);
    if (!parts) return parts.error();
  }
  json candidates = json::array();
  std::optional<std::size_t> best;
  double lowest = std::numeric_limits<double>::infinity();
  const std::vector<KanSize> sizes = sizes_to_try(parts->train.size(), parts->train.features(), parts->train.outputs());
  if (settings.log && sizes.size() > 1)
    settings.log(LogLevel::info, fmt::format("choosing one of {} sizes{}", sizes.size(),
                                             folds > 0 ? fmt::format(", each on {} folds", folds) : ""));
  for (const KanSize& size : sizes) {
    const std::vector<std::string> overrides = overrides_of(recipe, size, parts->train.size(), training);
    const bool alone = (folds == 0 && !parts->validation);
    const double loss = alone ? 0.0 : compare(options_with(recipe, overrides), *parts, folds, settings);
    if (settings.stop && *settings.stop) break;
    candidates.push_back({{"hidden", size.hidden}, {"grid", size.grid}, {"weight_decay", size.decay}, {"loss", loss}});
    // A larger network must be better by more than chance.
    if (!best || loss < 0.99 * lowest) best = candidates.size() - 1, lowest = loss;
    if (alone) break;
    if (recipe.was_set("model.hidden") && recipe.was_set("model.grid") && recipe.was_set("optimizer.weight_decay"))
      break;
  }
  std::vector<std::string> overrides = overrides_of(recipe, sizes[best.value_or(0)], parts->train.size(), training);
  overrides.push_back("model.size=\"given\"");
  auto settled = parse_recipe(recipe.to_toml(), "the recipe", overrides);
  if (!settled) return settled.error();
  return std::optional<SettledRecipe>(
      SettledRecipe{std::move(*settled),
                    {{"rows", rows}, {"folds", folds}, {"candidates", candidates}, {"chosen", best.value_or(0)}}});
}

Result<std::optional<SettledRecipe>> settle_kan(const Config& recipe, const std::filesystem::path& data_root,
                                                const SessionOptions& settings) {
  const auto load = [&](const KanOptions& options) { return load_splits(options, data_root); };
  return settle_rows(recipe, load, ValidationRows::drawn, settings);
}

}  // namespace gradloom::app
