#include "gradloom/kernels/reduce/tree_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "gradloom/base/random.h"

namespace gradloom::kernels::reduce {
namespace {

// The definition, top down: a node of 2^k leaves is the sum of its two halves; a missing right half is passed through.
float node_sum(const std::vector<float>& leaves, std::size_t first, std::size_t size) {
  if (size == 1) return leaves[first];
  const float left = node_sum(leaves, first, size / 2);
  return first + size / 2 < leaves.size() ? left + node_sum(leaves, first + size / 2, size / 2) : left;
}
float definition(const std::vector<float>& leaves) { return node_sum(leaves, 0, std::bit_ceil(leaves.size())); }

std::vector<float> random_leaves(std::size_t count) {
  const RandomStream random(count, RandomUse::check, 1);
  std::vector<float> leaves(count);
  for (std::size_t n = 0; n < count; ++n)
    leaves[n] = static_cast<float>(random.normal(static_cast<std::uint32_t>(n)) * std::exp2(double(n % 9)));
  return leaves;
}

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

TEST(TreeSum, TheStackGivesTheSumOfTheTree) {
  std::size_t other_than_in_order = 0;
  for (std::size_t count = 1; count <= 130; ++count) {
    const std::vector<float> leaves = random_leaves(count);
    EXPECT_TRUE(same_bits(tree_total(std::span(leaves)), definition(leaves))) << count << " leaves";
    float in_order = leaves[0];
    for (std::size_t n = 1; n < count; ++n) in_order = in_order + leaves[n];
    other_than_in_order += !same_bits(in_order, definition(leaves));
  }
  EXPECT_GT(other_than_in_order, 50u) << "the two orders can hardly be told apart by these numbers";
  EXPECT_EQ(tree_total(std::span<const float>()), 0.0f);
}

TEST(TreeSum, NoLeafGoesBeyondTheLevelsThatAreAnnounced) {
  for (std::size_t leaves = 1; leaves <= 5000; ++leaves) {
    const LeafPlace last = place_of(leaves - 1);
    EXPECT_LT(last.level, tree_levels(leaves));
    EXPECT_LE(tree_levels(leaves), tree_levels(leaves + 1));
    EXPECT_EQ(tree_height(leaves), last.level + 1 - last.merges);
    EXPECT_EQ(last.store, leaves == 1 || tree_height(leaves) > tree_height(leaves - 1));
  }
  EXPECT_EQ(tree_levels(2), 1u);
}

// What ranks do: each sums its own leaves to maximal aligned ranges; whoever has all ranges adds them in order.
struct AlignedRange {
  std::size_t first, size;
  float sum;
};
std::vector<AlignedRange> aligned_ranges(const std::vector<float>& leaves, std::size_t first, std::size_t last) {
  std::vector<AlignedRange> ranges;
  while (first < last) {
    const std::size_t room = std::bit_floor(last - first);
    const std::size_t size = first == 0 ? room : std::min(room, std::size_t{1} << std::countr_zero(first));
    ranges.push_back({first, size, tree_total(std::span(leaves).subspan(first, size))});
    first += size;
  }
  return ranges;
}

TEST(TreeSum, AnyContiguousSplitIsFinishedByItsAlignedRanges) {
  for (const std::size_t count : {1, 2, 3, 5, 8, 13, 31, 32, 33, 100}) {
    const std::vector<float> leaves = random_leaves(count);
    const RandomStream random(count, RandomUse::check, 2);
    for (std::uint32_t trial = 0; trial < 40; ++trial) {
      float levels[10] = {};
      const TreeSum<float> sum{.root = levels, .upper = levels + 1, .stride = 1};
      for (std::size_t first = 0, last; first < count; first = last) {
        last = first + 1 + random.below(trial * 128 + static_cast<std::uint32_t>(first), 1 + count / 3);
        for (const AlignedRange& range : aligned_ranges(leaves, first, std::min(last, count)))
          add_leaf(sum, range.first / range.size, &range.sum, 0, 1);
      }
      finish_levels(sum, count, 0, 1);
      EXPECT_TRUE(same_bits(levels[0], definition(leaves))) << count << " leaves, trial " << trial;
    }
  }
}

TEST(TreeSum, EmptyLeavesAreAddedAsOneNodeWhereTheyAreAligned) {
  const RandomStream random(7, RandomUse::check, 3);
  for (std::uint32_t trial = 0; trial < 200; ++trial) {
    std::vector<float> leaves;
    float one[10] = {}, other[10] = {};
    const TreeSum<float> stack{.root = one, .upper = one + 1, .stride = 1};
    const TreeSum<float> plain{.root = other, .upper = other + 1, .stride = 1};
    for (std::uint32_t part = 0; part < 6; ++part) {
      const float value = static_cast<float>(random.normal(trial * 16 + part));
      const std::size_t empty = random.below(trial * 16 + 8 + part, 20), leaf = leaves.size();
      add_leaf(stack, leaf, &value, 0, 1);
      add_empty_leaves(stack, leaf + 1, empty, 0, 1);
      leaves.push_back(value);
      leaves.insert(leaves.end(), empty, -0.0f);
    }
    for (std::size_t n = 0; n < leaves.size(); ++n) add_leaf(plain, n, &leaves[n], 0, 1);
    for (unsigned n = 0; n < tree_height(leaves.size()); ++n) EXPECT_TRUE(same_bits(one[n], other[n])) << trial;
    finish_levels(stack, leaves.size(), 0, 1);
    EXPECT_TRUE(same_bits(one[0], definition(leaves)));
  }
}

TEST(TreeSum, NothingIsAddedUnchanged) {
  const TreeSum<float> sum{}, range{.apart = true};
  for (const float x : {1.5f, -3.0f, 0.0f, -0.0f}) {
    EXPECT_TRUE(same_bits(x + sum.nothing(3), x));
    EXPECT_TRUE(same_bits(x + range.nothing(0), x));
  }
  EXPECT_FALSE(std::signbit(sum.nothing(0)));
}

}  // namespace
}  // namespace gradloom::kernels::reduce
