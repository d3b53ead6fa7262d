// Options of a run that trains a logic automaton.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradloom/base/file_name.h"
#include "gradloom/data/grids.h"
#include "gradloom/models/logic/automaton.h"
#include "gradloom/session/options/family.h"

namespace gradloom {

struct AutomatonDataOptions {
  std::string root;                    // folder of the image; empty: the current one, then that of the data
  GridTask task;                       // its channels are those of the model, image and rule those named below
  FileName image{"lizard"};            // a shipped picture, or a PNG file
  std::string rule = "B3/S23";         // of `life`
  std::optional<FileName> rule_table;  // the rule as a table of 512 rows, instead of `rule`
  std::size_t samples = 2;             // drawn anew for each epoch
  std::size_t test_samples = 8;
  std::size_t test_steps = 0;  // of the hard circuit before it is tested; 0: as many as the model has
};

// The goal that ends training early, and how it is reached.
struct AutomatonGoalOptions {
  std::uint64_t every = 0;       // epochs between two tests of the hard circuit; 0: never
  std::uint64_t start_over = 0;  // epochs after which the first stage starts again with other wires; 0: never
  std::size_t search = 0;        // circuits near the hard one that each test tries; 0: none
  std::size_t search_last = 0;   // the same of the last test of a start; 0: `search`
};

struct AutomatonOptions : FamilyOptions {
  AutomatonOptions() {
    family = "automaton";
    train.epochs = 500;
    train.loss_kind = LossKind::mse;
    train.loss.reduction = Reduction::sum;
    train.optimizer = {
        .kind = OptimizerKind::adamw, .lr = 0.05, .beta2 = 0.99, .weight_decay = 1e-2, .clip_value = 100};
    train.batch = 0;
    model.channels = 8;
    model.perception = {8, 4, 2};
    model.update = {256, 128, 64, 32, 16, 8};
  }

  AutomatonDataOptions data;
  logic::AutomatonOptions model;  // height, width and target channels follow from the data
  AutomatonGoalOptions goal;
  std::vector<AutomatonOptions> stages;
};

}  // namespace gradloom
