#include "gradloom/app/graph_settings.h"

#include "gradloom/app/settings.h"

namespace gradloom::app {

Result<GraphSet> load_graphs(const GraphFileOptions& data, const std::filesystem::path& data_root) {
  return gradloom::load_graphs(
      {.path = data_path(data.root, data.path.value_or(FileName()), data_root), .format = data.format});
}

Result<void> check_norm(const graph::NetworkOptions& model, const TrainingOptions& train) {
  if (model.norm != graph::Norm::batch || !train.keep_best) return {};
  return Error{ErrorCode::invalid_input,
               "model.norm = \"batch\" needs train.keep_best = false: its statistics belong to the last parameters"};
}

}  // namespace gradloom::app
