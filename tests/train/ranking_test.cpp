// Rank correlations and precision, on cases worked out by hand.
#include "gradloom/train/ranking.h"

#include <gmock/gmock.h>

namespace gradloom {
namespace {

using ::testing::ElementsAre;
using List = std::vector<double>;

TEST(Ranking, EqualValuesShareTheMeanRank) {
  EXPECT_THAT(average_ranks(List{3, 1, 3, 2}), ElementsAre(3.5, 1, 3.5, 2));
  EXPECT_TRUE(average_ranks({}).empty());
}

TEST(Ranking, SpearmanSeesOrderAlone) {
  EXPECT_DOUBLE_EQ(*spearman(List{1, 2, 3, 4}, List{1, 10, 100, 1000}), 1.0);
  EXPECT_DOUBLE_EQ(*spearman(List{1, 2, 3, 4}, List{4, 3, 2, 1}), -1.0);
  // Ranks 1 2 3 4 5 and 2 1 4 3 5: 1 - 6 * 4 / 120.
  EXPECT_DOUBLE_EQ(*spearman(List{1, 2, 3, 4, 5}, List{2, 1, 4, 3, 5}), 0.8);
  EXPECT_FALSE(spearman(List{1, 1, 1}, List{1, 2, 3}).has_value());
  EXPECT_FALSE(spearman(List{1}, List{2}).has_value());
}

TEST(Ranking, PrecisionCountsTiesInTheTruthAsRight) {
  const List truth{9, 8, 8, 1, 0};
  EXPECT_DOUBLE_EQ(precision_at(2, List{5, 1, 4, 0, 0}, truth), 1.0);  // 9 and one of the two 8
  EXPECT_DOUBLE_EQ(precision_at(2, List{5, 1, 1, 4, 0}, truth), 0.5);
  EXPECT_DOUBLE_EQ(precision_at(9, List{5, 1, 1, 4, 0}, truth), 1.0);
}

}  // namespace
}  // namespace gradloom
