#include "gradloom/app/run/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace gradloom::app {
namespace {

using nlohmann::json;

std::optional<double> value_of_metric(const PartMetrics& part, const char* name) {
  const auto found = part.values.find(name);
  return found == part.values.end() ? std::nullopt : std::optional(found->second);
}

// Whether nothing is left to learn from these data.
bool is_solved(const PartMetrics& part, double accuracy, double r2) {
  return value_of_metric(part, "accuracy").value_or(0.0) > accuracy || value_of_metric(part, "r2").value_or(0.0) > r2;
}

std::string overfit(const PartMetrics& train, const PartMetrics& held, const char* part, std::string_view cure) {
  const auto rmse = value_of_metric(train, "rmse"), held_rmse = value_of_metric(held, "rmse");
  if (rmse && held_rmse && *held_rmse > 2 * *rmse)
    return fmt::format("overfit: the RMSE is {:.3g} on {} data and {:.3g} on training data; {}", *held_rmse, part,
                       *rmse, cure);
  // Of a circuit counts what is left of it without its weights.
  const char* name = value_of_metric(train, "hard_accuracy") ? "hard_accuracy" : "accuracy";
  const auto accuracy = value_of_metric(train, name), held_accuracy = value_of_metric(held, name);
  if (!accuracy || !held_accuracy) return "";
  // A few samples miss by chance: their share has a standard error.
  const double p = *held_accuracy;
  const double error = held.samples > 0 ? std::sqrt(p * (1 - p) / static_cast<double>(held.samples)) : 0.0;
  if (p + 2 * error >= *accuracy - 0.1) return "";
  return fmt::format("overfit: the accuracy{} is {:.3g} on {} data and {:.3g} on training data; {}",
                     name[0] == 'h' ? " of the hard circuit" : "", p, part, *accuracy, cure);
}

// By epoch, of the last stage; `validation` is shorter where there is none.
struct Losses {
  std::vector<double> train, validation;
};

Losses last_losses(const std::vector<json>& log) {
  Losses losses;
  json stage;
  for (const json& line : log) {
    if (line.value("event", "") != "epoch" || !line.contains("loss") || !line["loss"].is_number()) continue;
    if (line.value("stage", json()) != stage) losses = {};
    stage = line.value("stage", json());
    losses.train.push_back(line["loss"].get<double>());
    if (const json v = line.value("validation", json()); v.is_number()) losses.validation.push_back(v.get<double>());
  }
  return losses;
}

// An empty text, or what to do against too few epochs.
std::string undertrained(const Losses& losses) {
  const std::vector<double>& train = losses.train;
  if (train.size() < 10) return "";
  // Means over a tenth: single epochs are noisy.
  const std::size_t tenth = train.size() / 10;
  const auto mean = [&](std::size_t begin) {
    double sum = 0.0;
    for (std::size_t i = begin; i < begin + tenth; ++i) sum += train[i];
    return sum / static_cast<double>(tenth);
  };
  const double before = mean(train.size() - 2 * tenth), last = mean(train.size() - tenth);
  if (last >= 0.9 * before) return "";
  // More of what no longer helps on validation data is no advice.
  if (const auto& held = losses.validation; held.size() == train.size())
    if (std::min_element(held.begin(), held.end()) < held.end() - static_cast<std::ptrdiff_t>(tenth)) return "";
  return fmt::format(
      "undertrained: the loss fell by {:.0f} % in the last tenth of the epochs; epochs = {} or more may "
      "do better",
      100 * (1 - last / before), 2 * train.size());
}

}  // namespace

std::string learned_nothing(const Metrics& metrics, LossKind loss, std::optional<double> largest_class,
                            const std::vector<json>& log) {
  const bool of_means = loss != LossKind::mae && loss != LossKind::huber;
  if (const auto r2 = value_of_metric(metrics.train, "r2");
      of_means && r2 && *r2 < 0.0 && last_losses(log).train.size() >= 10)
    return fmt::format(
        "the model has learned nothing: its squared errors on training data are larger than those of always predicting "
        "the mean (r2 is {:.3g}); set more epochs or another optimizer.lr, and scale targets whose spread is far from "
        "1",
        *r2);
  const auto accuracy = value_of_metric(metrics.train, "accuracy");
  // Shares are sums of floats.
  if (!accuracy || !largest_class || *largest_class >= 1.0 || *accuracy > *largest_class + 1e-6 ||
      last_losses(log).train.size() < 10)
    return "";
  return fmt::format(
      "the model has learned nothing: its accuracy on training data is {:.3g}, and always choosing the most frequent "
      "class has {:.3g}; set more epochs or another optimizer.lr, and see that the features tell something about the "
      "class",
      *accuracy, *largest_class);
}

std::string validation_overflow(const Metrics& metrics, const std::vector<json>& log) {
  if (!metrics.validation || !std::isfinite(metrics.validation->loss)) return "";
  std::size_t epochs = 0, overflows = 0;
  std::uint64_t first = 0;
  for (const json& line : log) {
    if (line.value("event", "") != "epoch") continue;
    ++epochs;
    if (line.value("validation", json()).is_null() && overflows++ == 0)
      first = line.value("run_epoch", std::uint64_t{0});
  }
  if (overflows == 0) return "";
  return fmt::format(
      "the loss on validation data was not finite after {} of {} epochs, at first after epoch {}: they are never the "
      "best; a smaller optimizer.lr or gradient clipping (optimizer.clip_norm) keeps training in range",
      overflows, epochs, first);
}

std::string stages_in_vain(const std::vector<json>& log) {
  std::vector<std::string> vain;
  std::string kept;
  bool watched = false, better = false;
  for (const json& line : log) {
    const std::string event = line.value("event", "");
    if (event == "epoch") {
      watched = watched || line.value("validation", json()).is_number();
      better = better || line.value("best", false);
    } else if (event == "stage") {
      const std::string note = line.value("note", "");
      if (better)
        kept = note, vain.clear();
      else if (watched && !kept.empty())
        vain.push_back(note);
      watched = better = false;
    }
  }
  if (vain.empty()) return "";
  return fmt::format(
      "{} did no better on validation data than {}, whose function the network has kept; the same without {} takes "
      "less time",
      fmt::join(vain, ", "), kept, vain.size() == 1 ? "this stage" : "these stages");
}

const PartMetrics* held_out(const Metrics& metrics) {
  return metrics.validation ? &*metrics.validation : metrics.test ? &*metrics.test : nullptr;
}

std::vector<std::string> training_advice(const Metrics& metrics, const std::vector<json>& log, std::string_view cure) {
  const PartMetrics* held = held_out(metrics);
  if (held == nullptr || is_solved(*held, 0.99, 0.995)) return {};
  std::string found;
  if (!cure.empty()) found = overfit(metrics.train, *held, metrics.validation ? "validation" : "test", cure);
  if (found.empty() && !is_solved(metrics.train, 0.999, 0.999)) found = undertrained(last_losses(log));
  if (found.empty()) return {};
  return {std::move(found)};
}

}  // namespace gradloom::app
