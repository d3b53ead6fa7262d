// The keys that recipes of several families share.
#pragma once

#include <string>

#include "gradloom/io/config.h"

namespace gradloom::app {

// Where families differ in what is usual.
struct TrainingDefaults {
  std::string loss = "auto", reduction = "mean", optimizer = "adam";
  double lr = 1e-2, beta2 = 0.999, weight_decay = 0.0, clip_value = 0.0;
  std::int64_t batch = 64;
};

// Keys that stand first in every recipe.
void add_head(Schema& s, const std::string& family, std::int64_t epochs, std::string epochs_doc);
// loss.*, optimizer.*, schedule.*, train.*.
void add_training_keys(Schema& s, const TrainingDefaults& defaults);
// Keys of a stage that every family has.
Schema stage_schema();
void add_stages(Schema& s, Schema stage);

// Families that live in files of their own.
Schema pair_schema();
Schema rewrite_schema();

}  // namespace gradloom::app
