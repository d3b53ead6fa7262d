// The keys that recipes of several families share.
#pragma once

#include <string>

#include "gradloom/io/option_schema.h"
#include "gradloom/session/options/rows.h"

namespace gradloom::app {

// Keys that stand first in every recipe.
void bind_head(const OptionPart<FamilyOptions>& o, std::string epochs_doc);
// data.* of families that learn from rows.
void bind_row_data(const OptionPart<RowDataOptions>& data);
// loss.*, optimizer.*, schedule.*, train.*; and the keys of a stage that every family has. `for_best` is the rule of
// train.keep_best.
void bind_training(const OptionPart<TrainingOptions>& train, EffectRule for_best);

// The rule of train.keep_best where the number `share` says how much of the data is for validation; empty: never any.
EffectRule needs_validation(std::string share);

}  // namespace gradloom::app
