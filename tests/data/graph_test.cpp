#include "gradloom/data/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "gradloom/base/random.h"
#include "gradloom/data/fingerprint.h"

namespace gradloom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const Result<void>& result) { return result.ok() ? "no error" : result.error().message; }

TEST(Graph, KeepsArcsByDestinationAndBySource) {
  GraphBuilder builder(Direction::directed);
  for (int i = 0; i < 4; ++i) builder.add_node().or_throw();
  builder.add_edge(3, 1).or_throw();
  builder.add_edge(0, 1).or_throw();
  builder.add_edge(1, 0).or_throw();
  builder.add_edge(3, 3).or_throw();
  const Graph g = builder.build();
  EXPECT_EQ(g.nodes(), 4u);
  EXPECT_EQ(g.edges(), 4u);
  EXPECT_THAT(g.in_ptr(), ElementsAre(0, 1, 3, 3, 4));
  EXPECT_THAT(g.in_source(), ElementsAre(1, 0, 3, 3));
  EXPECT_THAT(g.out_ptr(), ElementsAre(0, 1, 2, 2, 4));
  EXPECT_THAT(g.out_target(), ElementsAre(1, 0, 1, 3));
  EXPECT_THAT(g.tpos(), ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(g.arc_edge(), ElementsAre(2, 1, 0, 3));
}

TEST(Graph, StoresAnUndirectedEdgeAsTwoArcsAndALoopAsOne) {
  GraphBuilder builder(Direction::undirected);
  for (int i = 0; i < 3; ++i) builder.add_node().or_throw();
  builder.add_edge(2, 0, {.label = 7}).or_throw();
  builder.add_edge(1, 1, {.label = 8}).or_throw();
  const Graph g = builder.build();
  EXPECT_EQ(g.arcs(), 3u);
  EXPECT_EQ(g.edges(), 2u);
  EXPECT_THAT(g.in_source(), ElementsAre(2, 1, 0));
  EXPECT_THAT(g.arc_edge(), ElementsAre(0, 1, 0));
  EXPECT_THAT(g.edge_labels(), ElementsAre(7, 8));
}

// Position k of the transposed order and slot tpos[k] are the same arc, whatever the graph.
TEST(Graph, TransposedPositionsNameTheSameArc) {
  for (std::uint32_t trial = 0; trial < 40; ++trial) {
    const RandomStream random(5, RandomUse::user, 0, trial);
    std::uint32_t at = 0;
    GraphBuilder builder(trial % 2 ? Direction::directed : Direction::undirected);
    const std::uint32_t n = 1 + random.below(at++, 12);
    for (std::uint32_t i = 0; i < n; ++i) builder.add_node().or_throw();
    for (int e = 0; e < 25; ++e) {
      const std::uint32_t a = random.below(at++, n), b = random.below(at++, n);
      if (!builder.has_edge(a, b)) builder.add_edge(a, b).or_throw();
    }
    const Graph g = builder.build();
    std::vector<bool> seen(g.arcs());
    for (std::uint32_t u = 0; u < n; ++u)
      for (std::uint32_t k = g.out_ptr()[u]; k < g.out_ptr()[u + 1]; ++k) {
        const std::uint32_t slot = g.tpos()[k], v = g.out_target()[k];
        ASSERT_LT(slot, g.arcs());
        EXPECT_FALSE(seen[slot]);
        seen[slot] = true;
        EXPECT_EQ(g.in_source()[slot], u);
        EXPECT_GE(slot, g.in_ptr()[v]);
        EXPECT_LT(slot, g.in_ptr()[v + 1]);
      }
  }
}

TEST(GraphBuilder, RefusesWhatIsWrongAndSaysWhat) {
  GraphBuilder b(Direction::undirected, LoopPolicy::refuse);
  b.add_node({.label = 0}).or_throw();
  EXPECT_THAT(error_of(b.add_node()), HasSubstr("node 1 lacks a label"));
  b.add_node({.label = 1}).or_throw();
  EXPECT_THAT(error_of(b.add_edge(0, 2)), HasSubstr("there are 2 nodes"));
  EXPECT_THAT(error_of(b.add_edge(1, 1)), HasSubstr("to itself"));
  b.add_edge(0, 1, {.weight = 2.0}).or_throw();
  EXPECT_THAT(error_of(b.add_edge(1, 0, {.weight = 1.0})), HasSubstr("occurs twice"));
  b.add_node({.label = 1}).or_throw();
  EXPECT_THAT(error_of(b.add_edge(0, 2)), HasSubstr("lacks a weight"));
  EXPECT_THAT(error_of(b.add_edge(0, 2, {.label = 0, .weight = 1.0})), HasSubstr("has a label"));
  const double infinite[] = {1.0 / 0.0};
  EXPECT_THAT(error_of(b.add_edge(0, 2, {.weight = infinite[0]})), HasSubstr("finite"));
  EXPECT_THAT(error_of(b.add_node({.label = 0, .features = infinite})), HasSubstr("features"));
  SparseRows rows{.columns = 2, .row_ptr = {0, 2, 2, 2}, .column = {1, 0}, .value = {1, 1}};
  EXPECT_THAT(error_of(b.set_sparse_features(rows)), HasSubstr("ascending"));
  EXPECT_EQ(b.build().edges(), 1u);
}

TEST(GraphBuilder, TakesBothDirectionsOfADirectedEdge) {
  GraphBuilder b(Direction::directed);
  b.add_node().or_throw();
  b.add_node().or_throw();
  EXPECT_TRUE(b.add_edge(0, 1).ok());
  EXPECT_TRUE(b.add_edge(1, 0).ok());
  EXPECT_FALSE(b.add_edge(1, 0).ok());
}

GraphSet set_of(std::vector<std::string> labels, const std::string& id) {
  GraphSetBuilder set;
  GraphBuilder graph(Direction::undirected);
  for (const std::string& label : labels) graph.add_node({.label = set.node_labels.intern(label)}).or_throw();
  set.add(graph, id);
  return set.finish();
}

TEST(GraphSet, SortsNamesAndKeepsTheirMeaning) {
  const GraphSet words = set_of({"N", "C", "N"}, "a");
  EXPECT_THAT(words.node_labels.names(), ElementsAre("C", "N"));
  EXPECT_THAT(words.graphs[0].node_labels(), ElementsAre(1, 0, 1));
  EXPECT_THAT(set_of({"10", "9", "1.0", "1"}, "a").node_labels.names(), ElementsAre("1", "1.0", "9", "10"));
}

TEST(GraphSet, AppendGivesEqualNamesEqualNumbers) {
  GraphSet set = set_of({"C", "N"}, "a");
  set.append(set_of({"B", "C"}, "b"));
  EXPECT_THAT(set.node_labels.names(), ElementsAre("C", "N", "B"));
  EXPECT_THAT(set.graphs[1].node_labels(), ElementsAre(2, 0));
  EXPECT_EQ(*set.find("b"), 1u);
  EXPECT_EQ(set.find("c").error().code, ErrorCode::not_found);
  set.append(set_of({"C"}, "b"));
  EXPECT_THAT(set.find("b").error().message, HasSubstr("several"));
}

// A set of one graph in which one of thirteen things is another.
GraphSet changed_set(int change) {
  GraphSetBuilder set;
  GraphBuilder builder(change == 1 ? Direction::directed : Direction::undirected);
  const double feature[] = {change == 2 ? 0.25 : 0.5};
  for (std::uint32_t v = 0; v < 3; ++v)
    builder.add_node({set.node_labels.intern(change == 3 ? "b" : "a"), v == 1 && change == 4 ? 1u : 0u, feature})
        .or_throw();
  const double of_edge[] = {change == 5 ? 2.0 : 1.0};
  builder.add_edge(0, 1, {change == 6 ? 1u : 0u, change == 7 ? 3.0 : 1.0, of_edge}).or_throw();
  if (change != 8) builder.add_edge(change == 9 ? 0 : 1, 2, {0u, 1.0, of_edge}).or_throw();
  if (change == 10) builder.set_class(0);
  if (change == 11) builder.set_target(0.0);
  set.edge_labels.intern("x"), set.edge_labels.intern("y");
  set.graph_classes.intern("yes");
  set.node_classes.intern("c"), set.node_classes.intern("d");
  set.add(builder, change == 12 ? "second" : "first");
  set.name_nodes({"u", "v", change == 13 ? "z" : "w"});
  return set.finish();
}

TEST(GraphSet, AnyChangeGivesAnotherFingerprint) {
  std::set<std::uint64_t> seen;
  for (int change = 0; change <= 13; ++change) {
    EXPECT_TRUE(seen.insert(fingerprint(changed_set(change))).second) << "change " << change;
    EXPECT_FALSE(seen.insert(fingerprint(changed_set(change))).second);
  }
}

}  // namespace
}  // namespace gradloom
