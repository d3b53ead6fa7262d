#include "gradloom/train/ranking.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace gradloom {

std::vector<double> average_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first + 1;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (std::size_t k = first; k < last; ++k) ranks[order[k]] = 0.5 * static_cast<double>(first + 1 + last);
    first = last;
  }
  return ranks;
}

std::optional<double> spearman(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> x = average_ranks(a), y = average_ranks(b);
  const double mean = 0.5 * static_cast<double>(x.size() + 1);
  double xx = 0.0, yy = 0.0, xy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
    xy += (x[i] - mean) * (y[i] - mean);
  }
  if (!(xx > 0) || !(yy > 0)) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

double precision_at(std::size_t k, std::span<const double> predicted, std::span<const double> truth) {
  k = std::min(k, predicted.size());
  std::vector<std::size_t> order(predicted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return predicted[a] > predicted[b]; });
  std::vector<double> best(truth.begin(), truth.end());
  std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(k - 1), best.end(), std::greater<>());
  const double least = best[k - 1];
  std::size_t right = 0;
  for (std::size_t i = 0; i < k; ++i) right += truth[order[i]] >= least;
  return static_cast<double>(right) / static_cast<double>(k);
}

}  // namespace gradloom
