// Options of a run that learns to rewrite expressions.
#pragma once

#include <optional>
#include <vector>

#include "gradloom/data/rewrite_dataset.h"
#include "gradloom/models/graph/tree_network.h"
#include "gradloom/session/options/family.h"

namespace gradloom {

struct RewriteDataOptions {
  // Numbers and sizes; the seed is below.
  ExpressionSetOptions expressions{.train = 4000, .validation = 500, .test = 1000, .large = 500};
  std::uint64_t expansions = 2000;    // nodes of the search tree that proves the edits of a sample
  std::optional<std::uint64_t> seed;  // of the expressions; unset: that of training
};

struct RewriteModelOptions : graph::TreeOptions {
  std::size_t passes = 32;  // maximum number of times the network is applied when it is tested
};

struct RewriteOptions : FamilyOptions {
  RewriteOptions() {
    family = "graph-rewrite";
    train.epochs = 40;
    train.loss_kind = LossKind::cross_entropy;
    train.optimizer.lr = 2e-3;
    soft.soft_weight = 0.1;
  }

  RewriteDataOptions data;
  RewriteModelOptions model;  // the most nodes follow from the data
  RewriteLoss soft;           // what the loss adds to the cross-entropy
  std::vector<RewriteOptions> stages;
};

}  // namespace gradloom
