// Which rows train, validate and test, and in which order an epoch visits them; functions of the seed alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gradloom {

// Disjoint row indices, each ascending.
struct Split {
  std::vector<std::uint32_t> train, validation, test;
};

struct SplitFractions {
  double train = 0.8, validation = 0.0, test = 0.2;
};

struct SplitCounts {
  std::size_t train = 0, validation = 0, test = 0;
};

// A random split of n rows. With `labels` (n of them; empty: not used) each class is spread over the parts in
// proportion. Validation and test are rounded to the nearest count; when the fractions sum to 1, training gets all the
// rest. Throws on negative fractions, or more than there are rows.
Split make_split(std::size_t n, const SplitFractions& fractions, std::uint64_t seed,
                 std::span<const std::uint32_t> labels = {});
Split make_split(std::size_t n, const SplitCounts& counts, std::uint64_t seed,
                 std::span<const std::uint32_t> labels = {});

// Fold `fold` of `folds`: its rows are the test part, all others the training part. The folds of one seed cover every
// row once and differ by at most one in size. Throws unless 2 <= folds <= n and fold < folds.
Split make_fold(std::size_t n, std::size_t folds, std::size_t fold, std::uint64_t seed,
                std::span<const std::uint32_t> labels = {});

// Moves this fraction of the training rows to validation, drawn as make_split draws; 0: none. `labels` are those of all
// rows, or empty.
void hold_out(Split& split, double fraction, std::uint64_t seed, std::span<const std::uint32_t> labels = {});

}  // namespace gradloom
