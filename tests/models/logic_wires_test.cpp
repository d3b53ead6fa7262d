#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "gradloom/models/logic/wires.h"

namespace gradloom::logic {
namespace {

using ::testing::HasSubstr;

std::set<std::pair<std::uint32_t, std::uint32_t>> as_set(const std::vector<Wire>& wires) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const Wire& w : wires) pairs.insert({w.a, w.b});
  return pairs;
}

TEST(Wires, FirstKernelPairsEveryNeighbourWithTheCentre) {
  const auto wires = first_kernel_wires(RandomStream(1, RandomUse::wires));
  const std::set<std::pair<std::uint32_t, std::uint32_t>> expected{{0, 4}, {1, 4}, {2, 4}, {3, 4},
                                                                   {5, 4}, {6, 4}, {7, 4}, {8, 4}};
  EXPECT_EQ(wires.size(), 8u);
  EXPECT_EQ(as_set(wires), expected);
}

TEST(Wires, UniquePairsComeInTheirOrderAndAreThenShuffled) {
  const RandomStream random(3, RandomUse::wires);
  using Set = std::set<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_EQ(as_set(unique_wires(6, 3, random)), (Set{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(as_set(unique_wires(6, 5, random)), (Set{{0, 1}, {2, 3}, {4, 5}, {1, 2}, {3, 4}}));
  EXPECT_EQ(as_set(unique_wires(5, 6, random)), (Set{{0, 1}, {2, 3}, {1, 2}, {3, 4}, {0, 2}, {1, 3}}));
  for (const auto& [in, out] : {std::pair<std::size_t, std::size_t>{264, 256}, {17, 128}, {256, 128}, {5, 10}}) {
    const auto wires = unique_wires(in, out, random);
    EXPECT_EQ(wires.size(), out);
    EXPECT_EQ(as_set(wires).size(), out) << "a pair twice";
    for (const Wire& w : wires) EXPECT_TRUE(w.a < w.b && w.b < in);
  }
}

TEST(Wires, TheOrderIsRandomAndAFunctionOfTheSeed) {
  const auto once = unique_wires(64, 64, RandomStream(5, RandomUse::wires));
  EXPECT_EQ(once, unique_wires(64, 64, RandomStream(5, RandomUse::wires)));
  EXPECT_NE(once, unique_wires(64, 64, RandomStream(6, RandomUse::wires)));
  EXPECT_NE(once[0], (Wire{0, 1}));
}

TEST(Wires, ImpossibleUniqueWiresSayWhy) {
  const RandomStream random(1, RandomUse::wires);
  const auto message = [&](std::size_t in, std::size_t out) -> std::string {
    try {
      unique_wires(in, out, random);
    } catch (const Exception& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(message(10, 4), HasSubstr("at least 5 gates"));
  EXPECT_THAT(message(4, 7), HasSubstr("6 different pairs"));
  EXPECT_THAT(message(1, 1), HasSubstr("0 different pairs"));
  EXPECT_EQ(message(4, 6), "no error");
  EXPECT_EQ(message(10, 5), "no error");
}

TEST(Wires, InputsThatNobodyReadsAreReported) {
  const RandomStream random(1, RandomUse::wires);
  EXPECT_TRUE(unread_inputs(unique_wires(10, 5, random), 10).empty());
  EXPECT_EQ(unread_inputs(unique_wires(17, 9, random), 17), (std::vector<std::uint32_t>{16}));
  EXPECT_EQ(unread_inputs({{0, 2}}, 4), (std::vector<std::uint32_t>{1, 3}));
}

TEST(Wires, RandomOnesReadEveryInputWhereTheyCan) {
  const RandomStream random(2, RandomUse::wires);
  for (const auto& [in, out] : {std::pair<std::size_t, std::size_t>{1, 3}, {2, 1}, {9, 5}, {30, 100}}) {
    const auto wires = random_wires(in, out, random);
    EXPECT_EQ(wires.size(), out);
    std::size_t unread = unread_inputs(wires, in).size();
    EXPECT_LE(unread, in / 8) << in;  // a clash of both inputs may cost one
    for (const Wire& w : wires) {
      EXPECT_TRUE(w.a < in && w.b < in);
      if (in > 1) {
        EXPECT_NE(w.a, w.b);
      }
    }
  }
  EXPECT_THROW(random_wires(0, 1, random), Exception);
}

TEST(Wires, DamagedOnesAreRefused) {
  for (const float bad : {-1.0f, 9.0f, 2.5f, NAN, INFINITY, 1e30f}) {
    const float saved[] = {0, 1, 2, bad};
    const auto wires = restore_wires<float>(saved, 2, 9, "update.0.wires");
    ASSERT_FALSE(wires.ok()) << bad;
    EXPECT_THAT(wires.error().message, HasSubstr("update.0.wires: gate 1"));
  }
}

}  // namespace
}  // namespace gradloom::logic
