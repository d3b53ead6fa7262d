// How well a prediction ranks things.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace gradloom {

// Ranks 1 .. n; equal values share the mean of theirs.
std::vector<double> average_ranks(std::span<const double> values);

// Spearman's rank correlation: that of the average ranks. None when either side is constant or there are fewer than two
// values. Both have the same length.
std::optional<double> spearman(std::span<const double> a, std::span<const double> b);

// Of the k largest predictions (the first ones on ties), the share whose truth is at least the k-th largest truth. All
// of them when there are fewer than k; 0 < k, and there is at least one value.
double precision_at(std::size_t k, std::span<const double> predicted, std::span<const double> truth);

}  // namespace gradloom
