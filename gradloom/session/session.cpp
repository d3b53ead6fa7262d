#include "gradloom/session/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "gradloom/io/fields.h"

namespace gradloom {

nlohmann::json to_json(const PartMetrics& metrics) {
  nlohmann::json result{{"loss", finite_or_null(metrics.loss)}};
  for (const auto& [name, value] : metrics.values) result[name] = finite_or_null(value);
  return result;
}

nlohmann::json to_json(const Metrics& metrics) {
  const auto part = [](const std::optional<PartMetrics>& p) { return p ? to_json(*p) : nlohmann::json(nullptr); };
  return {{"train", to_json(metrics.train)}, {"validation", part(metrics.validation)}, {"test", part(metrics.test)}};
}

std::vector<std::string> metric_warnings(const PartMetrics& metrics, std::string_view data, Precision precision) {
  std::vector<std::string_view> wrong;
  if (metrics.has_loss && !std::isfinite(metrics.loss)) wrong.emplace_back("loss");
  for (const auto& [name, value] : metrics.values)
    if (!std::isfinite(value)) wrong.emplace_back(name);
  if (wrong.empty()) return {};
  return {fmt::format(
      "not finite on {}: {}; predictions, or the squares of their errors, are too large for {}; look for inputs and "
      "targets far from those of the training data, or scale them{}",
      data, fmt::join(wrong, ", "), name_of(kPrecisions, precision),
      precision == Precision::float32 ? ", or set precision = \"float64\"" : "")};
}

std::vector<std::string> metric_warnings(const Metrics& metrics, Precision precision) {
  std::vector<std::string> all;
  const auto see = [&](const PartMetrics& part, const char* data) {
    for (std::string& warning : metric_warnings(part, data, precision)) all.push_back(std::move(warning));
  };
  see(metrics.train, "training data");
  if (metrics.validation) see(*metrics.validation, "validation data");
  if (metrics.test) see(*metrics.test, "test data");
  return all;
}

void Session::note_idle(const std::vector<unsigned>& ranks) {
  if (ranks.empty() || !idle_ranks_.empty()) return;
  idle_ranks_ = ranks;
  std::string names;
  for (const unsigned rank : ranks) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  log(LogLevel::warning, "a batch has fewer parts than there are ranks: rank" +
                             std::string(ranks.size() == 1 ? " " : "s ") + names +
                             " will be idle; set a larger batch (train.batch), or start fewer ranks");
}

Result<void> Session::save_model(const FilePlace& file, const nlohmann::json& options) {
  return give_model(options, [&](std::span<const TensorView> tensors, const Metadata& metadata) {
    return write_safetensors(file, tensors, metadata);
  });
}

std::string Session::model_bytes(const nlohmann::json& options) {
  std::string bytes;
  const auto take = [&](std::span<const TensorView> tensors, const Metadata& metadata) -> Result<void> {
    bytes = safetensors_bytes(tensors, metadata);
    return {};
  };
  give_model(options, take).or_throw();
  return bytes;
}

TrainEnd train(Session& session, SessionListener& listener) {
  while (true) {
    // A run that was resumed here must not end the stage twice.
    if (!session.position().stage_closed) {
      if (session.train_stage(listener) == TrainEnd::stopped) return TrainEnd::stopped;
      listener.stage_finished(session);
    }
    if (session.position().stage + 1 == session.stages()) return TrainEnd::finished;
    session.enter_stage();
    listener.stage_entered(session);
    if (session.stop_requested()) return TrainEnd::stopped;
  }
}

}  // namespace gradloom
