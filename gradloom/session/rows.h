// Rows in memory, in the three parts of a run: what families that learn from rows are opened from.
#pragma once

#include <optional>

#include "gradloom/data/rows.h"
#include "gradloom/data/source.h"

namespace gradloom {

struct RowSplits {
  RowDataset<double> train;
  std::optional<RowDataset<double>> validation, test;
  RowCode code;  // how columns became features and classes
};

}  // namespace gradloom
