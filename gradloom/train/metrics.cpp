#include "gradloom/train/metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace gradloom {

const MetricKind* find_metric(std::string_view name) {
  const auto found = std::ranges::find(kMetricKinds, name, &MetricKind::name);
  return found == std::end(kMetricKinds) ? nullptr : found;
}

namespace {

// `target(s, j)` is a double.
template <class T, class Target>
std::map<std::string, double> metrics_against(const RowBatch<T>& batch, View<const T, 2> y, const Target& target) {
  if (batch.size == 0) return {};
  const std::size_t out = y.extent(1);
  if (!batch.label.empty()) {
    double right = 0.0, total = 0.0;
    for (std::size_t s = 0; s < batch.size; ++s) {
      const T* row = y.row(s);
      const auto predicted = out == 1 ? static_cast<std::size_t>(row[0] > 0)
                                      : static_cast<std::size_t>(std::max_element(row, row + out) - row);
      const double w = batch.weight.empty() ? 1.0 : static_cast<double>(batch.weight[s]);
      right += predicted == batch.label[s] ? w : 0.0;
      total += w;
    }
    return {{"accuracy", total > 0 ? right / total : 0.0}};
  }
  double total = 0.0, squares = 0.0, absolute = 0.0;
  std::vector<double> mean(out, 0.0), weight(out, 0.0);
  const auto weight_of = [&](std::size_t s, std::size_t j) {
    const double w = batch.weight.empty() ? 1.0 : static_cast<double>(batch.weight[s]);
    return batch.mask.empty() ? w : w * static_cast<double>(batch.mask(s, j));
  };
  for (std::size_t s = 0; s < batch.size; ++s)
    for (std::size_t j = 0; j < out; ++j) {
      const double w = weight_of(s, j), t = target(s, j), e = static_cast<double>(y(s, j)) - t;
      total += w;
      squares += w * e * e;
      absolute += w * std::abs(e);
      mean[j] += w * t;
      weight[j] += w;
    }
  if (!(total > 0)) return {};
  double variance = 0.0;
  for (std::size_t j = 0; j < out; ++j) mean[j] = weight[j] > 0 ? mean[j] / weight[j] : 0.0;
  for (std::size_t s = 0; s < batch.size; ++s)
    for (std::size_t j = 0; j < out; ++j) {
      const double d = target(s, j) - mean[j];
      variance += weight_of(s, j) * d * d;
    }
  std::map<std::string, double> metrics{{"rmse", std::sqrt(squares / total)}, {"mae", absolute / total}};
  if (variance > 0) metrics["r2"] = 1.0 - squares / variance;
  return metrics;
}

}  // namespace

template <class T>
std::map<std::string, double> row_metrics(const RowBatch<T>& batch, View<const T, 2> y) {
  return metrics_against<T>(batch, y,
                            [&](std::size_t s, std::size_t j) { return static_cast<double>(batch.target(s, j)); });
}

template <class T>
std::map<std::string, double> row_metrics(const RowBatch<T>& batch, std::span<const double> exact_target,
                                          View<const T, 2> y) {
  if (exact_target.empty()) return row_metrics(batch, y);
  return metrics_against<T>(batch, y, [&](std::size_t s, std::size_t j) { return exact_target[s * y.extent(1) + j]; });
}

template std::map<std::string, double> row_metrics(const RowBatch<float>&, View<const float, 2>);
template std::map<std::string, double> row_metrics(const RowBatch<double>&, View<const double, 2>);
template std::map<std::string, double> row_metrics(const RowBatch<float>&, std::span<const double>,
                                                   View<const float, 2>);
template std::map<std::string, double> row_metrics(const RowBatch<double>&, std::span<const double>,
                                                   View<const double, 2>);

}  // namespace gradloom
