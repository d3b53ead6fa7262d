// Options of a run that trains a classifier of gates.
#pragma once

#include <optional>
#include <vector>

#include "gradloom/models/logic/wires.h"
#include "gradloom/session/options/rows.h"

namespace gradloom {

struct GatesModelOptions {
  SizePolicy size = SizePolicy::given;            // automatic: chosen before training, from the data
  std::vector<std::size_t> gates{256, 256, 256};  // of each layer; the last is rounded up to a multiple of the classes
  std::optional<logic::WireKind> wires = logic::WireKind::random;  // unset: unique where the widths allow it
  double temperature = 8.0;  // the sum of a class's gates is divided by this before the softmax
};

struct GatesOptions : RowFamilyOptions {
  GatesOptions() {
    family = "gates";
    task = Task::classification;
    train.epochs = 200;
    train.optimizer = {
        .kind = OptimizerKind::adamw, .lr = 0.05, .beta2 = 0.99, .weight_decay = 1e-2, .clip_value = 100};
  }

  std::size_t thresholds = 4;  // bits of a numeric column with more than two values: one for each quantile
  GatesModelOptions model;
  std::vector<GatesOptions> stages;
};

}  // namespace gradloom
