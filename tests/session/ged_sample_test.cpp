// Edit distances as a measure of a graph network in training.
#include "gradloom/session/families/graph/ged_sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace gradloom::app {
namespace {

// Paths of 2, 3, 4, ... nodes without labels: two of them are apart by a node and an edge for each step.
GraphSet paths(std::uint32_t count) {
  GraphSetBuilder set;
  for (std::uint32_t n = 2; n < count + 2; ++n) {
    GraphBuilder b(Direction::undirected);
    for (std::uint32_t v = 0; v < n; ++v) b.add_node({}).or_throw();
    for (std::uint32_t v = 1; v < n; ++v) b.add_edge(v - 1, v, {}).or_throw();
    set.add(b, std::to_string(n));
  }
  return set.finish();
}

TEST(GedSample, JudgesOutputsByExactDistancesOnAnyThreads) {
  const GraphSet set = paths(9);
  const std::vector<std::uint32_t> part = {8, 2, 0, 5, 7, 3};
  std::vector<float> y;  // the number of nodes, and which half a path belongs to
  for (const std::uint32_t g : part) y.push_back(static_cast<float>(g)), y.push_back(g < 4 ? 100.0f : -100.0f);
  const View<const float, 2> outputs(y.data(), {part.size(), 2});
  nlohmann::json one;
  for (const unsigned threads : {1u, 2u, 3u, 8u}) {
    const GedSample sample(Exec({.threads = threads}), set, part, {.graphs = 100});
    const nlohmann::json found = sample.judge<float>(outputs);
    if (threads == 1) one = found;
    EXPECT_EQ(found, one);
  }
  EXPECT_EQ(one["pairs"], 15);
  EXPECT_EQ(one["exact"], 15);
  // Twice the difference of lengths, over all pairs of 0 2 3 | 5 7 8.
  EXPECT_DOUBLE_EQ(one["same"], 2.0 * (2 + 3 + 1 + 2 + 3 + 1) / 6);
  EXPECT_DOUBLE_EQ(one["different"], 2.0 * (5 + 7 + 8 + 3 + 5 + 6 + 2 + 4 + 5) / 9);
  EXPECT_GT(one["spearman"], 0.7);
}

TEST(GedSample, LeavesOutPairsThatAreNotProven) {
  const GraphSet set = paths(6);
  const Exec ex({.threads = 1});
  const std::vector<std::uint32_t> part = {0, 1, 2, 3, 4, 5};
  const std::vector<double> y = {0, 1, 2, 3, 4, 5};
  const GedSample some(ex, set, part, {.graphs = 3, .seed = 4});
  EXPECT_EQ(some.judge<double>({y.data(), {6, 1}})["pairs"], 3);
  EXPECT_FALSE(some.judge<double>({y.data(), {6, 1}}).contains("same"));
  const GedSample small(ex, set, part, {.graphs = 6, .nodes = 4});
  EXPECT_EQ(small.judge<double>({y.data(), {6, 1}})["pairs"], 3);  // paths of 2, 3 and 4 nodes
  const GedSample hasty(ex, set, part, {.graphs = 6, .expansions = 1});
  EXPECT_LE(hasty.judge<double>({y.data(), {6, 1}})["exact"], 15);
  const GedSample nobody(ex, set, {}, {});
  EXPECT_TRUE(nobody.judge<double>({y.data(), {0, 1}})["spearman"].is_null());
}

}  // namespace
}  // namespace gradloom::app
