#include <gtest/gtest.h>

#include "gradloom/models/logic/automaton_shared.h"

namespace gradloom::logic {
namespace {

TEST(CellShards, AreAtMostThirtyTwoAndHoldEveryCellOnce) {
  for (const std::size_t samples : {1, 2, 3, 5, 8, 20, 31, 32, 33, 64, 100, 1000})
    for (const std::size_t cells : {1, 15, 16, 25, 64, 100, 256, 1000, 4096, 10007}) {
      const CellShards shards{samples, cells};
      ASSERT_LE(shards.count(), kShards);
      ASSERT_GE(shards.count(), 1u);
      EXPECT_EQ(shards.begin(0), 0u);
      EXPECT_EQ(shards.begin(shards.count()), samples * cells);
      for (std::size_t s = 0; s < shards.count(); ++s) {
        const std::size_t begin = shards.begin(s), end = shards.begin(s + 1);
        EXPECT_LT(begin, end) << samples << " samples of " << cells << " cells, shard " << s;
        const bool whole = begin % cells == 0 && end % cells == 0, of_one = begin / cells == (end - 1) / cells;
        EXPECT_TRUE(whole || of_one) << samples << " samples of " << cells << " cells, shard " << s;
      }
    }
}

TEST(CellShards, AGridThatIsLargeEnoughFeedsManyWorkers) {
  EXPECT_EQ((CellShards{1, 64 * 64}.count()), 32u);
  EXPECT_EQ((CellShards{4, 64 * 64}.count()), 32u);
  EXPECT_EQ((CellShards{64, 256}.count()), 32u);
}

}  // namespace
}  // namespace gradloom::logic
