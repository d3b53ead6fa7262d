// What the description, the forward and the backward pass of the classifier share; not part of the interface.
#pragma once

#include <algorithm>
#include <bit>

#include "gradloom/base/rounding.h"
#include "gradloom/models/logic/classifier.h"

namespace gradloom::logic {

namespace gate = kernels::gate;
namespace reduce = kernels::reduce;

inline constexpr std::size_t kTile = gate::kTile;
inline constexpr std::size_t kShards = 32;
inline constexpr std::size_t kGates = 256;  // of one task that works on gates
inline constexpr std::size_t kLeafTiles = kLeafRows / kTile;
static_assert(kLeafRows % kTile == 0);

// Leaves of one range at most, so that there are about kShards of them.
inline std::size_t range_leaves(std::size_t leaves) { return std::bit_ceil(divide_up(leaves, kShards)); }

template <class T>
template <class F>
void GateClassifier<T>::each_layer(std::size_t begin, std::size_t end, F&& f) const {
  for (std::size_t l = 0; l < options_.layers.size(); ++l) {
    const std::size_t first = starts_[l + 1] - options_.inputs;
    const std::size_t from = std::max(begin, first), to = std::min(end, first + options_.layers[l]);
    if (from < to) f(l, from - first, to - first);
  }
}

}  // namespace gradloom::logic
