#include "gradloom/session/session.h"

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
