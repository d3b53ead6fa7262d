// The order of every sum over samples: one binary tree over leaves.
//
// A leaf is a part of a step that one owner sums in the order of its kernel's contract (256 rows, a graph, a shard of
// cells, ...). Leaves are numbered through a step. A node of the tree covers an aligned range of 2^k leaf numbers; a
// missing right half is passed through. So any contiguous split of the leaves, over pieces of a batch, workgroups or
// machines, is finished by combining the sums of its maximal aligned ranges.
//
// Leaves that arrive in order need a stack of partial sums, one level for each aligned range that is complete and not
// yet part of a larger one. Level 0 is the result itself, so sums of one or two leaves need no other memory:
//   place = place_of(leaf): store the leaf's sum to level `place.level`, or add it there;
//   then, place.merges times: add the top level to the one below it;
//   behind the last leaf: add the top level to the one below until level 0 is left.
// A sum that may stay empty starts at -0, to which every number is added unchanged.
//
// Contract 1 (kernels/contract.h) adds leaf after leaf to level 0.
#pragma once

#include <bit>
#include <cstddef>

#include "gradloom/kernels/contract.h"

namespace gradloom::kernels::reduce {

struct LeafPlace {
  unsigned level = 0;
  bool store = true;    // otherwise added to what the level holds
  unsigned merges = 0;  // afterwards
};

constexpr LeafPlace place_of(std::size_t leaf) {
  if constexpr (kContract == 1) return {.level = 0, .store = leaf == 0, .merges = 0};
  const bool odd = leaf % 2 == 1;
  return {.level = static_cast<unsigned>(std::popcount(leaf / 2)),
          .store = !odd,
          .merges = odd ? static_cast<unsigned>(std::countr_one(leaf)) - 1 : 0};
}

// Levels that hold something behind this many leaves.
constexpr unsigned tree_height(std::size_t leaves) {
  if constexpr (kContract == 1) return leaves > 0 ? 1 : 0;
  return static_cast<unsigned>(std::popcount(leaves));
}

// Levels that a sum of this many leaves needs at most, at least 1.
constexpr unsigned tree_levels(std::size_t leaves) {
  if (kContract == 1 || leaves <= 2) return 1;
  return static_cast<unsigned>(std::bit_width(leaves - 1));
}

}  // namespace gradloom::kernels::reduce
