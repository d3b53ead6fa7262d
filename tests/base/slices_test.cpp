#include "gradloom/base/slices.h"

#include <gmock/gmock.h>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

using ::testing::ElementsAre;

TEST(Slices, StartAtMultiplesOf256BytesAndDoNotOverlap) {
  for (std::size_t scalar : {4u, 8u}) {
    Slices slices(scalar);
    slices.add("a", {3, 5}, 16);
    slices.add("b", {1});
    slices.add("c", {70});
    slices.add("empty", {0, 4});
    slices.add("d", {2, 3, 4});
    std::size_t end = 0;
    for (const Slice& s : slices) {
      EXPECT_EQ(s.offset * scalar % 256, 0u) << s.name;
      EXPECT_GE(s.offset, end) << s.name;
      end = s.end();
    }
    EXPECT_GE(slices.flat_size(), end);
    EXPECT_EQ(slices.flat_size() * scalar % 256, 0u);
    EXPECT_EQ(slices.logical_size(), 15u + 1 + 70 + 0 + 24);
  }
}

TEST(Slices, KnowTheirRowsAndPadding) {
  Slices slices(4);
  slices.add("w", {2, 3, 5}, 16);
  const Slice& w = slices[0];
  EXPECT_EQ(w.rows(), 6u);
  EXPECT_EQ(w.logical_size(), 30u);
  EXPECT_EQ(w.stored_size(), 96u);
  EXPECT_TRUE(w.saved);
  slices.add("table", {2}, 0, false);
  EXPECT_FALSE(slices[1].saved);
  EXPECT_EQ(slices[1].stored_last, 2u);
}

TEST(Slices, EachLogicalElementIsVisitedOnceInOrder) {
  Slices slices(4);
  slices.add("first", {3});
  slices.add("w", {2, 3}, 4);
  std::vector<std::size_t> visited;
  for_each_logical(slices[1], [&](std::size_t i) { visited.push_back(i); });
  EXPECT_THAT(visited, ElementsAre(64, 65, 66, 68, 69, 70));
}

TEST(Slices, AreFoundByName) {
  Slices slices(4);
  EXPECT_EQ(slices.add("a", {1}), 0u);
  EXPECT_EQ(slices.add("b", {1}), 1u);
  EXPECT_EQ(slices.find("b"), 1u);
  EXPECT_EQ(slices.find("c"), slices.size());
  EXPECT_EQ(slices.find(""), slices.size());
}

TEST(Slices, RefuseWhatMakesNoSense) {
  Slices slices(4);
  slices.add("a", {4});
  EXPECT_THROW(slices.add("a", {4}), Exception);
  EXPECT_THROW(slices.add("b", {}), Exception);
  EXPECT_THROW(slices.add("c", {2, 8}, 7), Exception);
  EXPECT_EQ(slices.size(), 1u);
}

}  // namespace
}  // namespace gradloom
