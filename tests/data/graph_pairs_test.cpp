// Tables of distances, and batches of pairs.
#include "gradloom/data/graph_pairs.h"

#include <gmock/gmock.h>

#include "gradloom/base/error.h"
#include "gradloom/data/distance_table.h"

namespace gradloom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DistanceTables, AreReadAsTheyAreWritten) {
  const auto table = parse_distances("3\na b c\n\n2\n1 0.5\n", "t");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_THAT(table->ids, ElementsAre("a", "b", "c"));
  EXPECT_EQ(table->at(0, 0), 0.0);
  EXPECT_EQ(table->at(1, 0), 2.0);
  EXPECT_EQ(table->at(0, 2), 1.0);
  EXPECT_EQ(table->at(1, 2), 0.5);
}

TEST(DistanceTables, WrongOnesAreRefusedWithTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"2\na b\n1e300\n", "1e300"},  {"", "number of graphs"}, {"0\n", "0 graphs"},
      {"2\na\n", "1 ids for 2"},     {"2\na b\n", "missing"},  {"2\na b\n1 2\n", "t:3"},
      {"2\na b\n-1\n", "-1"},        {"2\na b\nnan\n", "nan"}, {"2\na b\n1\n2\n", "text follows"},
      {"4000000000\n", "4000000000"}};
  for (const auto& [text, words] : cases) {
    const auto table = parse_distances(text, "t");
    ASSERT_FALSE(table) << text;
    EXPECT_EQ(table.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(table.error().message, HasSubstr(words));
  }
}

TEST(DistanceTables, MustBeAboutTheSameGraphs) {
  GraphSetBuilder builder;
  for (const char* id : {"a", "b"}) {
    GraphBuilder g(Direction::undirected);
    g.add_node().or_throw();
    builder.add(g, id);
  }
  const GraphSet set = builder.finish();
  EXPECT_TRUE(check_same_graphs(*parse_distances("2\na b\n1\n", "t"), set));
  EXPECT_THAT(check_same_graphs(*parse_distances("2\na c\n1\n", "t"), set).error().message, HasSubstr("'c'"));
  EXPECT_THAT(check_same_graphs(*parse_distances("1\na\n", "t"), set).error().message, HasSubstr("between 1"));
}

PairDataset<double> three_paths() {
  GraphSetBuilder builder;
  for (std::uint32_t nodes = 1; nodes <= 3; ++nodes) {
    GraphBuilder g(Direction::undirected);
    for (std::uint32_t v = 0; v < nodes; ++v) g.add_node().or_throw();
    for (std::uint32_t v = 1; v < nodes; ++v) g.add_edge(v - 1, v).or_throw();
    builder.add(g, std::to_string(nodes));
  }
  GraphFeatureOptions o;
  o.nodes = NodeFeatures::degrees, o.targets_known = false;
  const std::uint32_t which[] = {0, 1, 2};
  return {
      std::make_shared<GraphArrays<double>>(make_graph_arrays<double>(builder.finish(), which, GraphTask::graph, o)),
      {{2, 0, 0.25}, {0, 1, 0.5}, {1, 1, 1.0}}};
}

TEST(PairDatasets, BatchesHoldEveryGraphOnce) {
  const auto data = three_paths();
  auto storage = data.make_storage(2);
  const std::uint32_t which[] = {2, 0};
  const PairBatch<double> b = data.gather(which, storage);
  EXPECT_EQ(b.size, 2u);
  EXPECT_EQ(b.graphs, 3u);
  EXPECT_THAT(b.graph_ptr, ElementsAre(0u, 2u, 5u, 6u));  // graphs 1, 2, 0 in the order of their first use
  EXPECT_THAT(b.first, ElementsAre(0u, 1u));
  EXPECT_THAT(b.second, ElementsAre(0u, 2u));
  EXPECT_THAT(b.inverse_size, ElementsAre(0.5, 0.5));
  EXPECT_EQ(b.target(0, 0), 1.0);
  EXPECT_EQ(b.target(1, 0), 0.25);
  EXPECT_THAT(b.use_ptr, ElementsAre(0u, 2u, 3u, 4u));
  EXPECT_THAT(b.use_pair, ElementsAre(0u, 0u, 1u, 1u));
  EXPECT_THAT(b.use_side, ElementsAre(0, 1, 0, 1));
  const std::uint32_t again[] = {1};
  EXPECT_EQ(data.gather(again, storage).graphs, 2u);
  EXPECT_EQ(data.all().graphs, 3u);
}

TEST(PairDatasets, WrongPairsAreRefused) {
  const auto data = three_paths();
  auto storage = data.make_storage(1);
  const std::uint32_t two[] = {0, 1}, far[] = {9};
  EXPECT_THROW(data.gather(two, storage), Exception);
  EXPECT_THROW(data.gather(far, storage), Exception);
  const auto arrays = std::make_shared<GraphArrays<double>>(data.graphs().arrays());
  EXPECT_THROW(PairDataset<double>(arrays, {}), Exception);
  EXPECT_THROW(PairDataset<double>(arrays, {{0, 3, 1.0}}), Exception);
}

}  // namespace
}  // namespace gradloom
