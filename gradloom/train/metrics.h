// How good predictions are, in figures that people know.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "gradloom/data/batch.h"
#include "gradloom/data/rows.h"

namespace gradloom {

enum class Better { smaller, larger };

// A metric of any family, as its name tells it.
struct MetricKind {
  std::string_view name;
  Better better;
};

// What people ask for first comes first.
inline constexpr MetricKind kMetricKinds[] = {
    {"hard_accuracy", Better::larger},
    {"hard_loss", Better::smaller},
    {"accuracy", Better::larger},
    {"exact_match", Better::larger},
    {"rmse", Better::smaller},
    {"mae", Better::smaller},
    {"r2", Better::larger},
    {"distance_mae", Better::smaller},
    {"edit_accuracy", Better::larger},
    {"ged", Better::smaller},
    {"ged_exact", Better::larger},
    {"keep_everything", Better::larger},
    {"mse", Better::smaller},
    {"pass_match", Better::larger},
    {"passes", Better::smaller},
    {"precision_at_10", Better::larger},
    {"settled", Better::larger},
    {"spearman", Better::larger},
    {"spearman_mean", Better::larger},
    {"loss", Better::smaller},
};

// Null for a name that is no metric's.
const MetricKind* find_metric(std::string_view name);

// Regression: rmse, mae, r2 (over all targets together, weighted like the loss). Classification: accuracy, with the
// largest of y (lowest index on ties), or y > 0 for a single output. y (B, Out). Sums run in order, in double; empty
// batches give an empty map.
template <class T>
std::map<std::string, double> row_metrics(const RowBatch<T>& batch, View<const T, 2> y);

// The same against targets as they were before they were rounded to T: (B, Out), row by row; empty: those of the batch.
template <class T>
std::map<std::string, double> row_metrics(const RowBatch<T>& batch, std::span<const double> exact_target,
                                          View<const T, 2> y);

}  // namespace gradloom
