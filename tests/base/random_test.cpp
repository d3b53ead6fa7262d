#include "gradloom/base/random.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace gradloom {
namespace {

using ::testing::ElementsAre;

// The known answers that the authors of Philox publish for 4x32 with 10 rounds.
TEST(Random, PhiloxGivesTheKnownAnswers) {
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  constexpr std::uint32_t kOnes = 0xffffffffu;
  EXPECT_THAT(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
              ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
}

TEST(Random, StreamsOfOtherSeedsUsesEpochsAndSamplesDiffer) {
  const RandomStream base(1, RandomUse::data, 2, 3);
  EXPECT_EQ(base.bits(5), RandomStream(1, RandomUse::data, 2, 3).bits(5));
  EXPECT_NE(base.bits(5), base.bits(6));
  EXPECT_NE(base.bits(5), RandomStream(2, RandomUse::data, 2, 3).bits(5));
  EXPECT_NE(base.bits(5), RandomStream(1 | (std::uint64_t{1} << 32), RandomUse::data, 2, 3).bits(5));
  EXPECT_NE(base.bits(5), RandomStream(1, RandomUse::noise, 2, 3).bits(5));
  EXPECT_NE(base.bits(5), RandomStream(1, RandomUse::data, 3, 3).bits(5));
  EXPECT_NE(base.bits(5), RandomStream(1, RandomUse::data, 2, 4).bits(5));
}

// Bounds are five standard deviations of the estimate.
TEST(Random, UniformAndNormalNumbersHaveTheirRangesAndMoments) {
  constexpr std::uint32_t kCount = 200'000;
  const RandomStream random(7, RandomUse::user);
  const double n = kCount;
  double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const double u = random.uniform(i), z = random.normal(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ASSERT_TRUE(std::isfinite(z));
    sum += u;
    squares += (u - 0.5) * (u - 0.5);
    normal_sum += z;
    normal_squares += z * z;
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 12, 5 * std::sqrt(1.0 / 180 / n));
  EXPECT_NEAR(normal_sum / n, 0.0, 5 / std::sqrt(n));
  EXPECT_NEAR(normal_squares / n, 1.0, 5 * std::sqrt(2.0 / n));
}

TEST(Random, BelowReachesEveryValueAndNoOther) {
  const RandomStream random(7, RandomUse::user);
  std::vector<int> seen(10, 0);
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    const std::uint32_t v = random.below(i, 10);
    ASSERT_LT(v, 10u);
    ++seen[v];
  }
  for (int count : seen) EXPECT_NEAR(count, 1000, 5 * std::sqrt(900.0));
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(random.below(i, 1), 0u);
  EXPECT_LT(random.below(0, 0xffffffffu), 0xffffffffu);
}

std::vector<std::uint32_t> permutation(std::uint64_t seed, std::uint32_t epoch, std::size_t size) {
  std::vector<std::uint32_t> order(size, 99);
  random_permutation(RandomStream(seed, RandomUse::shuffle, epoch), order);
  return order;
}

TEST(Random, PermutationIsOneAndDependsOnSeedAndEpoch) {
  for (std::size_t size : {0u, 1u, 2u, 3u, 1000u}) {
    std::vector<std::uint32_t> expected(size);
    std::iota(expected.begin(), expected.end(), 0u);
    EXPECT_THAT(permutation(1, 2, size), ::testing::UnorderedElementsAreArray(expected));
  }
  const auto order = permutation(1, 2, 100);
  EXPECT_EQ(order, permutation(1, 2, 100));
  EXPECT_NE(order, permutation(2, 2, 100));
  EXPECT_NE(order, permutation(1, 3, 100));
}

TEST(Random, EveryPermutationIsEquallyLikely) {
  constexpr int kCount = 6000;
  std::map<std::vector<std::uint32_t>, int> seen;
  for (std::uint32_t epoch = 0; epoch < kCount; ++epoch) ++seen[permutation(3, epoch, 3)];
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, kCount / 6, 5 * std::sqrt(kCount * 5.0 / 36));
}

}  // namespace
}  // namespace gradloom
