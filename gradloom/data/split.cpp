#include "gradloom/data/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gradloom/base/error.h"
#include "gradloom/base/random.h"

namespace gradloom {
namespace {

// A random order of n rows. With labels, any stretch of it holds each class about in proportion: the k-th of a class of
// m rows stands at (k + 1/2)/m of the way.
std::vector<std::uint32_t> random_order(std::size_t n, std::uint64_t seed, std::span<const std::uint32_t> labels) {
  if (n > std::numeric_limits<std::uint32_t>::max())
    throw_invalid(fmt::format("cannot split {} rows; at most 2^32 - 1", n));
  if (!labels.empty() && labels.size() != n)
    throw_invalid(fmt::format("{} labels were given for {} rows", labels.size(), n));
  std::vector<std::uint32_t> order(n);
  random_permutation(RandomStream(seed, RandomUse::split), order);
  if (labels.empty()) return order;

  std::vector<std::size_t> count(*std::max_element(labels.begin(), labels.end()) + std::size_t{1}, 0),
      seen(count.size(), 0);
  for (std::uint32_t label : labels) ++count[label];
  struct Place {
    double at;
    std::uint32_t label, row;
  };
  std::vector<Place> places;
  places.reserve(n);
  for (std::uint32_t row : order) {
    const std::uint32_t label = labels[row];
    places.push_back({(static_cast<double>(seen[label]++) + 0.5) / static_cast<double>(count[label]), label, row});
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.at != b.at ? a.at < b.at : a.label < b.label; });
  for (std::size_t i = 0; i < n; ++i) order[i] = places[i].row;
  return order;
}

std::vector<std::uint32_t> sorted(std::span<const std::uint32_t> rows) {
  std::vector<std::uint32_t> result(rows.begin(), rows.end());
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

Split make_split(std::size_t n, const SplitCounts& counts, std::uint64_t seed, std::span<const std::uint32_t> labels) {
  if (counts.train > n || counts.validation > n - counts.train || counts.test > n - counts.train - counts.validation)
    throw_invalid(
        fmt::format("cannot split {} rows into {} + {} + {}", n, counts.train, counts.validation, counts.test));
  const auto order = random_order(n, seed, labels);
  const std::span rows(order);
  return {sorted(rows.subspan(counts.validation + counts.test, counts.train)), sorted(rows.first(counts.validation)),
          sorted(rows.subspan(counts.validation, counts.test))};
}

Split make_split(std::size_t n, const SplitFractions& f, std::uint64_t seed, std::span<const std::uint32_t> labels) {
  const double sum = f.train + f.validation + f.test;
  if (!(f.train >= 0 && f.validation >= 0 && f.test >= 0 && sum <= 1 + 1e-9))
    throw_invalid(fmt::format("the fractions {}, {}, {} of a split must not be negative and sum to at most 1", f.train,
                              f.validation, f.test));
  const auto rows = [&](double fraction, std::size_t available) {
    return std::min(available, static_cast<std::size_t>(std::floor(fraction * static_cast<double>(n) + 0.5)));
  };
  SplitCounts counts;
  counts.test = rows(f.test, n);
  counts.validation = rows(f.validation, n - counts.test);
  const std::size_t rest = n - counts.test - counts.validation;
  counts.train = sum >= 1 - 1e-9 ? rest : rows(f.train, rest);
  return make_split(n, counts, seed, labels);
}

Split make_fold(std::size_t n, std::size_t folds, std::size_t fold, std::uint64_t seed,
                std::span<const std::uint32_t> labels) {
  if (folds < 2 || folds > n || fold >= folds)
    throw_invalid(fmt::format("there is no fold {} of {} for {} rows", fold, folds, n));
  const auto order = random_order(n, seed, labels);
  const std::size_t begin = n * fold / folds, end = n * (fold + 1) / folds;
  Split split;
  split.test = sorted(std::span(order).subspan(begin, end - begin));
  split.train.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(begin));
  split.train.insert(split.train.end(), order.begin() + static_cast<std::ptrdiff_t>(end), order.end());
  std::sort(split.train.begin(), split.train.end());
  return split;
}

void hold_out(Split& split, double fraction, std::uint64_t seed, std::span<const std::uint32_t> labels) {
  if (fraction <= 0.0) return;
  std::vector<std::uint32_t> train_labels, train;
  if (!labels.empty())
    for (const std::uint32_t i : split.train) train_labels.push_back(labels[i]);
  const Split inner = make_split(split.train.size(), SplitFractions{1.0 - fraction, fraction, 0.0}, seed, train_labels);
  for (const std::uint32_t i : inner.train) train.push_back(split.train[i]);
  for (const std::uint32_t i : inner.validation) split.validation.push_back(split.train[i]);
  split.train = std::move(train);
}

}  // namespace gradloom
