#include "gradloom/app/families/gates/settle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "gradloom/data/binarise.h"
#include "gradloom/session/families/gates/family.h"

namespace gradloom::app {
namespace {

// Layers whose first has gates for every bit, and which end with `last`.
std::vector<std::size_t> reading_all(std::size_t bits, const std::vector<std::size_t>& last) {
  std::vector<std::size_t> layers;
  for (std::size_t width = (bits + 1) / 2; width > last.front(); width = (width + 1) / 2) layers.push_back(width);
  layers.insert(layers.end(), last.begin(), last.end());
  return layers;
}

std::vector<std::string> gate_overrides(const Config& recipe, const GatesSize& size, std::size_t rows,
                                        TrainingRows training) {
  OpenKeys open(recipe);
  const std::uint64_t epochs =
      recipe.was_set("epochs") ? static_cast<std::uint64_t>(recipe.integer("epochs")) : suitable_gate_epochs(rows);
  open.set("model.gates", fmt::format("[{}]", fmt::join(size.gates, ",")));
  open.set("model.temperature", fmt::format("{}", size.temperature));
  open.set("train.batch", fmt::format("{}", std::clamp<std::size_t>(rows / 2, 1, 32)));
  open.set("epochs", fmt::format("{}", epochs));
  if (size.restarts > 1) {
    open.set("train.restarts", fmt::format("{}", size.restarts));
    open.set("train.restart_epochs", fmt::format("{}", std::max<std::uint64_t>(1, epochs / 2)));
  }
  open.train_on(training);
  return open.overrides();
}

}  // namespace

std::vector<GatesSize> gate_sizes_to_try(std::size_t rows, std::size_t bits) {
  const GatesSize narrow{reading_all(bits, {32, 32, 32, 32, 16, 16, 16, 16}), 1.0, 10};
  const GatesSize middle{reading_all(bits, {128, 128, 64, 32}), 2.0};
  const GatesSize wide{reading_all(bits, {512, 512, 256, 128}), 4.0};
  if (rows > kSmallTable) return {wide, {reading_all(bits, {2000, 2000, 1000}), 10.0}};
  if (bits > 256) return {middle, wide};
  return {narrow, middle, wide};
}

std::uint64_t suitable_gate_epochs(std::size_t rows) {
  return std::clamp<std::uint64_t>(100000 / std::max<std::size_t>(rows, 1), 20, 600);
}

Result<std::optional<SettledRecipe>> settle_rows(const Config& recipe, const GatesParts& parts_of, ValidationRows given,
                                                 const SessionOptions& settings) {
  const auto choice = [&](const RowSplits& parts) {
    const std::size_t rows = parts.train.size();
    const auto thresholds = static_cast<std::size_t>(recipe.integer("data.thresholds"));
    auto sizes = gate_sizes_to_try(rows, choose_bits(parts.train, thresholds).size());
    if (recipe.was_set("model.gates")) sizes = {{option_schema<GatesOptions>().read(recipe).model.gates, 2.0}};
    SizeChoice result;
    for (const GatesSize& size : sizes)
      result.candidates.push_back(
          {{"gates", size.gates}, {"temperature", size.temperature}, {"restarts", size.restarts}});
    result.overrides = [&recipe, sizes, rows](std::size_t i, TrainingRows training) {
      return gate_overrides(recipe, sizes[i], rows, training);
    };
    result.keys = {"model.gates"};
    result.error_name = "error";
    result.error = [](const PartMetrics& m) { return 1.0 - m.values.at("hard_accuracy"); };
    return result;
  };
  return settle_size<GatesFamily, GatesOptions>({recipe, parts_of, given, settings, choice});
}

Result<std::optional<SettledRecipe>> settle_gates(const Config& recipe, const std::filesystem::path& data_root,
                                                  const SessionOptions& settings) {
  const auto load = [&](const GatesOptions& options) { return load_splits(options, data_root); };
  return settle_rows(recipe, GatesParts(load), ValidationRows::drawn, settings);
}

}  // namespace gradloom::app
