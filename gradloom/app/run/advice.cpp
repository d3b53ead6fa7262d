#include "gradloom/app/run/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace gradloom::app {
namespace {

using nlohmann::json;

std::optional<double> value_of_metric(const PartMetrics& part, const char* name) {
  const auto found = part.values.find(name);
  return found == part.values.end() ? std::nullopt : std::optional(found->second);
}

// Whether held-out data are predicted almost perfectly.
bool is_solved(const PartMetrics& held) {
  return value_of_metric(held, "accuracy").value_or(0.0) > 0.99 || value_of_metric(held, "r2").value_or(0.0) > 0.995;
}

std::string overfit(const PartMetrics& train, const PartMetrics& held, const char* part) {
  const auto rmse = value_of_metric(train, "rmse"), held_rmse = value_of_metric(held, "rmse");
  const auto accuracy = value_of_metric(train, "accuracy"), held_accuracy = value_of_metric(held, "accuracy");
  constexpr const char* kCure =
      "a smaller model.hidden or model.grid, or a larger optimizer.weight_decay, may do better on new data";
  if (rmse && held_rmse && *held_rmse > 2 * *rmse)
    return fmt::format("overfit: the RMSE is {:.3g} on {} data and {:.3g} on training data; {}", *held_rmse, part,
                       *rmse, kCure);
  if (accuracy && held_accuracy && *held_accuracy < *accuracy - 0.1)
    return fmt::format("overfit: the accuracy is {:.3g} on {} data and {:.3g} on training data; {}", *held_accuracy,
                       part, *accuracy, kCure);
  return "";
}

// Losses of the last stage, by epoch.
std::vector<double> last_losses(const std::vector<json>& log) {
  std::vector<double> losses;
  json stage;
  for (const json& line : log) {
    if (line.value("event", "") != "epoch" || !line.contains("loss") || !line["loss"].is_number()) continue;
    if (line.value("stage", json()) != stage) losses.clear();
    stage = line.value("stage", json());
    losses.push_back(line["loss"].get<double>());
  }
  return losses;
}

}  // namespace

std::string learned_nothing(const Metrics& metrics, std::optional<double> largest_class, const std::vector<json>& log) {
  const auto accuracy = value_of_metric(metrics.train, "accuracy");
  // Shares are sums of floats.
  if (!accuracy || !largest_class || *largest_class >= 1.0 || *accuracy > *largest_class + 1e-6 ||
      last_losses(log).size() < 10)
    return "";
  return fmt::format(
      "the model has learned nothing: its accuracy on training data is {:.3g}, and always choosing the most frequent "
      "class has {:.3g}; set more epochs or another optimizer.lr, and see that the features tell something about the "
      "class",
      *accuracy, *largest_class);
}

std::vector<std::string> training_advice(const Metrics& metrics, const std::vector<json>& log) {
  std::vector<std::string> found;
  const PartMetrics* held = metrics.validation ? &*metrics.validation : metrics.test ? &*metrics.test : nullptr;
  if (held == nullptr || is_solved(*held)) return found;
  std::string much = overfit(metrics.train, *held, metrics.validation ? "validation" : "test");
  const bool is_overfit = !much.empty();
  if (is_overfit) found.push_back(std::move(much));
  const std::vector<double> losses = last_losses(log);
  if (losses.size() < 10 || is_overfit) return found;
  // Means over a tenth: single epochs are noisy.
  const std::size_t tenth = losses.size() / 10;
  const auto mean = [&](std::size_t begin) {
    double sum = 0.0;
    for (std::size_t i = begin; i < begin + tenth; ++i) sum += losses[i];
    return sum / static_cast<double>(tenth);
  };
  const double before = mean(losses.size() - 2 * tenth), last = mean(losses.size() - tenth);
  if (last < 0.9 * before)
    found.push_back(
        fmt::format("undertrained: the loss fell by {:.0f} % in the last tenth of the epochs; epochs = {} or more may "
                    "do better",
                    100 * (1 - last / before), 2 * losses.size()));
  return found;
}

}  // namespace gradloom::app
