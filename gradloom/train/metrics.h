// How good predictions are, in figures that people know.
#pragma once

#include <map>
#include <string>

#include "gradloom/data/batch.h"

namespace gradloom {

// Regression: rmse, mae, r2 (over all targets together, weighted like the loss). Classification: accuracy, with the
// largest of y (lowest index on ties), or y > 0 for a single output. y (B, Out). Sums run in order, in double; empty
// batches give an empty map.
template <class T>
std::map<std::string, double> row_metrics(const RowBatch<T>& batch, View<const T, 2> y);

}  // namespace gradloom
