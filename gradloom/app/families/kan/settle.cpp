#include "gradloom/app/families/kan/settle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "gradloom/session/families/kan/family.h"

namespace gradloom::app {
namespace {

// From the smallest.
const std::vector<KanSize>& usual_sizes(std::size_t rows) {
  static const std::vector<KanSize> small = {
      {{}, 3, 0.3}, {{8}, 3, 0.3}, {{16}, 3, 1.0}, {{8}, 5, 0.1}, {{32}, 6, 0.1}};
  static const std::vector<KanSize> large = {{{16}, 5, 0.1}, {{32}, 12, 0.1}};
  return rows <= kSmallTable ? small : large;
}

GivenSize given_size(const Config& recipe, const KanOptions& asked) {
  GivenSize given;
  if (recipe.was_set("model.hidden")) given.hidden = asked.model.hidden;
  if (recipe.was_set("model.grid")) given.grid = asked.model.grid;
  if (recipe.was_set("optimizer.weight_decay")) given.decay = asked.train.optimizer.weight_decay;
  return given;
}

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
  if (!is_fine_grid(rows, size.grid)) open.train_on(training);
  return open.overrides();
}

}  // namespace

std::size_t suitable_batch(std::size_t rows) {
  const std::size_t batch = rows <= 1000 ? 16 : rows <= kSmallTable ? 32 : 64;
  return std::min(batch, std::max<std::size_t>(rows / 2, 1));
}

std::uint64_t suitable_epochs(std::size_t rows) { return rows <= kSmallTable ? 100 : 60; }

std::vector<KanSize> sizes_to_try(std::size_t rows, std::size_t features, std::size_t outputs, const GivenSize& given) {
  std::vector<KanSize> tried;
  for (const KanSize& usual : usual_sizes(rows)) {
    std::size_t edges = 0, in = features;
    for (const std::size_t width : usual.hidden) edges += in * width, in = width;
    edges += in * outputs;
    const std::size_t parameters = edges * (usual.grid + 4);  // a finer grid that is set is no reason for fewer nodes
    if (!tried.empty() && parameters > 10 * rows * outputs) continue;
    const KanSize size{given.hidden.value_or(usual.hidden), given.grid.value_or(usual.grid),
                       given.decay.value_or(usual.decay)};
    if (std::find(tried.begin(), tried.end(), size) == tried.end()) tried.push_back(size);
  }
  return tried;
}

bool is_fine_grid(std::size_t rows, unsigned grid) {
  return std::ranges::all_of(usual_sizes(rows), [&](const KanSize& size) { return size.grid < grid; });
}

Result<std::optional<SettledRecipe>> settle_rows(const Config& recipe, const KanParts& parts_of, ValidationRows given,
                                                 const SessionOptions& settings) {
  const KanOptions asked = option_schema<KanOptions>().read(recipe);
  if (asked.model.size == SizePolicy::automatic && !asked.model.multiply.empty() && !recipe.was_set("model.hidden"))
    return Error{ErrorCode::invalid_input,
                 "model.multiply belongs to the layers of model.hidden, which model.size = \"auto\" would choose; set "
                 "model.hidden as well"};
  const auto choice = [&](const RowSplits& parts) {
    const std::size_t rows = parts.train.size();
    const auto sizes = sizes_to_try(rows, parts.train.features(), parts.train.outputs(), given_size(recipe, asked));
    SizeChoice result;
    for (const KanSize& size : sizes)
      result.candidates.push_back({{"hidden", size.hidden}, {"grid", size.grid}, {"weight_decay", size.decay}});
    result.overrides = [&recipe, sizes, rows](std::size_t i, TrainingRows training) {
      return overrides_of(recipe, sizes[i], rows, training);
    };
    result.keys = {"model.hidden", "model.grid", "optimizer.weight_decay"};
    return result;
  };
  return settle_size<KanFamily, KanOptions>({recipe, parts_of, given, settings, choice});
}

Result<std::optional<SettledRecipe>> settle_kan(const Config& recipe, const std::filesystem::path& data_root,
                                                const SessionOptions& settings) {
  const auto load = [&](const KanOptions& options) { return load_splits(options, data_root); };
  return settle_rows(recipe, KanParts(load), ValidationRows::drawn, settings);
}

}  // namespace gradloom::app
