#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/models/graph/rows.h"

namespace gradloom::graph {
namespace {

// Few rows, several leaves in one block, a last block that is not full.
TEST(GraphRows, SumsOverRowsFollowTheTreeOnAnyThreads) {
  constexpr std::size_t kSize = 3;
  const RandomStream random(1, RandomUse::check, 1);
  for (const std::size_t rows : {1, 256, 257, 9000, 3 * 64 * 256 - 77, 5 * 64 * 256 + 1}) {
    std::vector<float> x(rows);
    for (std::size_t i = 0; i < rows; ++i) x[i] = static_cast<float>(random.normal(static_cast<std::uint32_t>(i)));
    const auto body = [&](float* to, std::size_t begin, std::size_t end) {
      std::fill_n(to, kSize, 0.0f);
      for (std::size_t i = begin; i < end; ++i)
        for (std::size_t c = 0; c < kSize; ++c) to[c] = to[c] + x[i] * static_cast<float>(c + 1);
    };
    const std::size_t leaf = dense::kLeafRows;
    std::vector<float> expected;
    for (std::size_t c = 0; c < kSize; ++c) {
      std::vector<float> leaves;
      for (std::size_t begin = 0; begin < rows; begin += leaf) {
        float sums[kSize];
        body(sums, begin, std::min(rows, begin + leaf));
        leaves.push_back(sums[c]);
      }
      expected.push_back(reduce::tree_total(std::span<const float>(leaves)));
    }
    for (const unsigned threads : {1u, 3u}) {
      const Exec ex({.threads = threads});
      const std::size_t count = dense::row_blocks(rows);
      EXPECT_LE(count, 64u);
      std::vector<float> sums((count + spare_sums(rows, threads)) * kSize, 7.0f), found(kSize);
      for_leaves(ex, rows, sums.data(), kSize, body);
      dense::add_blocks<float>(sums.data(), count, kSize, 0, kSize, GradientMode::overwrite, found.data());
      EXPECT_EQ(found, expected) << rows << " rows on " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace gradloom::graph
