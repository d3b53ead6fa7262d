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
// What a leaf may leave empty (a row that none of its samples touches) is +0 in leaf 0 and -0, to which every number is
// added unchanged, in all others: whether nothing is added or left out cannot be told apart.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

namespace gradloom::kernels::reduce {

struct LeafPlace {
  unsigned level = 0;
  bool store = true;    // otherwise added to what the level holds
  unsigned merges = 0;  // afterwards
};

constexpr LeafPlace place_of(std::size_t leaf) {
  const bool odd = leaf % 2 == 1;
  return {.level = static_cast<unsigned>(std::popcount(leaf / 2)),
          .store = !odd,
          .merges = odd ? static_cast<unsigned>(std::countr_one(leaf)) - 1 : 0};
}

// Levels that hold something behind this many leaves.
constexpr unsigned tree_height(std::size_t leaves) { return static_cast<unsigned>(std::popcount(leaves)); }

// Levels that a sum of this many leaves needs at most, at least 1.
constexpr unsigned tree_levels(std::size_t leaves) {
  if (leaves <= 2) return 1;
  return static_cast<unsigned>(std::bit_width(leaves - 1));
}

// The stack of a sum of arrays, and how far it is. Level 0 is `root`; level n > 0 is upper + (n - 1) stride, which may
// be null where tree_levels() of all leaves is 1. A view of the caller's memory.
template <class T>
struct TreeSum {
  T* root = nullptr;
  T* upper = nullptr;
  std::size_t stride = 0;  // from one upper level to the next
  std::size_t leaf = 0;    // leaves that came before
  bool complete = true;    // no leaf comes behind those of this call: it finishes the sum
  bool apart = false;      // an aligned range of a larger sum, which it does not begin, counted from 0

  T* level(unsigned n) const { return n == 0 ? root : upper + (n - 1) * stride; }
  TreeSum at(std::size_t offset) const {
    return {root + offset, upper ? upper + offset : nullptr, stride, leaf, complete, apart};
  }
  // What a leaf leaves empty.
  T nothing(std::size_t of) const { return of == 0 && !apart ? T(0) : -T(0); }
};

template <class T>
void add_level(const TreeSum<T>& sum, unsigned top, std::size_t begin, std::size_t end) {
  const T* __restrict from = sum.level(top);
  T* __restrict to = sum.level(top - 1);
  for (std::size_t n = begin; n < end; ++n) to[n] = to[n] + from[n];
}

// Elements [begin, end) behind a leaf whose sum is in its place.
template <class T>
void merge_levels(const TreeSum<T>& sum, std::size_t leaf, std::size_t begin, std::size_t end) {
  const LeafPlace place = place_of(leaf);
  for (unsigned n = 0; n < place.merges; ++n) add_level(sum, place.level - n, begin, end);
}

// Elements [begin, end) behind the last of so many leaves: level 0 is then the sum.
template <class T>
void finish_levels(const TreeSum<T>& sum, std::size_t leaves, std::size_t begin, std::size_t end) {
  for (unsigned top = tree_height(leaves); top-- > 1;) add_level(sum, top, begin, end);
}

// A leaf that is an array of its own: elements [begin, end) go to their place. An aligned range of 2^k leaves from
// `first` on is added in the same way, as leaf first >> k.
template <class T>
void add_leaf(const TreeSum<T>& sum, std::size_t leaf, const T* from, std::size_t begin, std::size_t end) {
  const LeafPlace place = place_of(leaf);
  T* to = sum.level(place.level);
  if (place.store)
    std::copy(from + begin, from + end, to + begin);
  else
    for (std::size_t n = begin; n < end; ++n) to[n] = to[n] + from[n];
  merge_levels(sum, leaf, begin, end);
}

// `count` leaves from `leaf` on that are all empty; leaf > 0. For sums that exist once in a call, where others have
// several leaves: the sum is the first of these, the others are empty. An aligned range of them is one node.
template <class T>
void add_empty_leaves(const TreeSum<T>& sum, std::size_t leaf, std::size_t count, std::size_t begin, std::size_t end) {
  while (count > 0) {
    const int size = std::min(std::countr_zero(leaf), static_cast<int>(std::bit_width(count)) - 1);
    const std::size_t node = leaf >> size;
    const LeafPlace place = place_of(node);
    if (place.store) std::fill(sum.level(place.level) + begin, sum.level(place.level) + end, -T(0));
    merge_levels(sum, node, begin, end);
    leaf += std::size_t{1} << size, count -= std::size_t{1} << size;
  }
}

// The sum of numbers, each of which is a leaf; 0 of none.
template <class T>
T tree_total(std::span<const T> leaves) {
  T levels[sizeof(std::size_t) * 8] = {};
  const TreeSum<T> sum{.root = levels, .upper = levels + 1, .stride = 1};
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) add_leaf(sum, leaf, leaves.data() + leaf, 0, 1);
  finish_levels(sum, leaves.size(), 0, 1);
  return levels[0];
}

}  // namespace gradloom::kernels::reduce
