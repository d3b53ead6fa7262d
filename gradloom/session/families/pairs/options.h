// Options of a run that learns how similar two graphs are.
#pragma once

#include <vector>

#include "gradloom/models/graph/pair_network.h"
#include "gradloom/session/options/family.h"
#include "gradloom/session/options/graphs.h"

namespace gradloom {

struct PairDataOptions : GraphFileOptions {
  FileName distances;  // exact distances of the graphs
};

struct PairOptions : FamilyOptions {
  PairOptions() {
    family = "graph-pairs";
    train.loss_kind = LossKind::mse;
    train.optimizer.lr = 1e-3;
    train.batch = 256;
    data.validation = 0.2;
    data.features.targets_known = false;
    model.encoder.task = GraphTask::graph;
    model.encoder.kind = graph::LayerKind::gin;
    model.encoder.hidden = {64, 64, 64};
    model.encoder.jumping = graph::Jumping::concat;
    model.encoder.outputs = 64;
  }

  PairDataOptions data;
  graph::PairOptions model;  // inputs and limits of the encoder follow from the data
  std::vector<PairOptions> stages;
};

}  // namespace gradloom
