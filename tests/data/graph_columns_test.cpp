// What the graphs of one set must share before they become one block of columns.
#include "gradloom/data/graph_columns.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "gradloom/base/error.h"
#include "gradloom/data/graph_source.h"

namespace gradloom {
namespace {

using testing::HasSubstr;

// A graph of two nodes and an edge; what each of them carries, as JSON.
std::string graph(const char* id, const std::string& nodes, const std::string& edge = "[0, 1]") {
  return fmt::format(R"({{"id": "{}", "class": "{}", "nodes": {}, "edges": [{}]}})", id, id, nodes, edge);
}
std::string both(const std::string& node) { return "[" + node + ", " + node + "]"; }
std::string edge(const std::string& values) { return R"({"from": 0, "to": 1, )" + values + "}"; }

GraphSet set_of(const std::string& graphs) {
  GraphSource source;
  source.path = "t";
  return parse_graph_json("[" + graphs + "]", source).or_throw();
}
GraphFeatureOptions reading(NodeFeatures kind) {
  GraphFeatureOptions o;
  o.nodes = kind;
  return o;
}

std::string error_of(const GraphSet& set, std::span<const std::uint32_t> which, const GraphFeatureOptions& o) try {
  (void)make_graph_arrays<float>(set, which, GraphTask::graph, o);
  return "no error";
} catch (const Exception& e) {
  EXPECT_EQ(e.error().code, ErrorCode::invalid_input);
  return e.error().message;
}

const std::string kLabels = both(R"({"label": "C"})"), kOne = both(R"({"features": [1.5]})"),
                  kTwo = both(R"({"features": [1.5, 2.5]})"), kBoth = both(R"({"label": "C", "features": [1.5]})"),
                  kNone = "2";

TEST(GraphColumns, GraphsThatCarrySomethingElseThanTheFirstAreRefused) {
  const std::string one = edge(R"("features": [1.5])"), two = edge(R"("features": [1.5, 2.5])"),
                    label = edge(R"("label": "x")"), weight = edge(R"("weight": 2)");
  const struct {
    std::string first, second;
    const char* words;
  } cases[] = {
      {graph("a", kLabels), graph("b", kNone), "graph 'b' has nodes without labels, but graph 'a' has nodes with"},
      {graph("a", kNone), graph("b", kLabels), "nodes with labels"},
      {graph("a", kNone), graph("b", kOne), "has 1 feature of each node, but graph 'a' has 0"},
      {graph("a", kLabels), graph("b", kOne), "nodes without labels"},
      {graph("a", kLabels), graph("b", kBoth), "has 1 feature of each node"},
      {graph("a", kOne), graph("b", kNone), "has 0 features of each node, but graph 'a' has 1"},
      {graph("a", kOne), graph("b", kTwo), "has 2 features of each node, but graph 'a' has 1"},
      {graph("a", kTwo), graph("b", kOne), "has 1 feature of each node, but graph 'a' has 2"},
      {graph("a", kNone, one), graph("b", kNone, two), "has 2 features of each edge, but graph 'a' has 1"},
      {graph("a", kNone, two), graph("b", kNone, one), "has 1 feature of each edge, but graph 'a' has 2"},
      {graph("a", kNone, one), graph("b", kNone), "has 0 features of each edge, but graph 'a' has 1"},
      {graph("a", kNone), graph("b", kNone, one), "has 1 feature of each edge, but graph 'a' has 0"},
      {graph("a", kNone), graph("b", kNone, label), "edges with labels"},
      {graph("a", kNone, label), graph("b", kNone), "edges without labels"},
      {graph("a", kNone, weight), graph("b", kNone), "edges without weights, but graph 'a' has edges with weights"},
      {graph("a", kNone), graph("b", kNone, weight), "edges with weights"},
  };
  GraphFeatureOptions o;
  o.edge_labels = true;
  for (const auto& [first, second, words] : cases) {
    const std::uint32_t all[] = {0, 1}, turned[] = {1, 0}, part[] = {1};
    for (const std::span<const std::uint32_t> which : {std::span<const std::uint32_t>(all), {turned}, {part}})
      EXPECT_THAT(error_of(set_of(first + "," + second), which, o), HasSubstr(words)) << first << second;
  }
}

TEST(GraphColumns, SparseAndDenseFeaturesDoNotMix) {
  GraphSet set = set_of(graph("a", kOne) + "," + graph("b", kOne));
  GraphBuilder sparse(Direction::undirected);
  sparse.add_node().or_throw();
  sparse.set_sparse_features({.columns = 1, .row_ptr = {0, 1}, .column = {0}, .value = {2.0}}).or_throw();
  set.graphs[1] = sparse.build();
  const std::uint32_t which[] = {0, 1};
  GraphFeatureOptions o;
  o.targets_known = false;
  EXPECT_THAT(error_of(set, which, o), HasSubstr("has sparse features, but graph 'a' has dense"));
}

TEST(GraphColumns, OptionsThatReadLessAskForLess) {
  const std::uint32_t which[] = {0, 1};
  const GraphSet nodes = set_of(graph("a", kLabels) + "," + graph("b", kTwo));
  for (const NodeFeatures kind : {NodeFeatures::degrees, NodeFeatures::identity, NodeFeatures::constant})
    EXPECT_EQ(error_of(nodes, which, reading(kind)), "no error");
  const GraphSet given = set_of(graph("a", kOne) + "," + graph("b", kBoth));
  EXPECT_EQ(error_of(given, which, reading(NodeFeatures::given)), "no error");
  const GraphSet edges = set_of(graph("a", kNone) + "," + graph("b", kNone, "[0, 1, \"x\"]"));
  EXPECT_EQ(error_of(edges, which, {}), "no error");
}

TEST(GraphColumns, GraphsWithoutNodesOrEdgesTellNothing) {
  const GraphSet set = set_of(graph("a", "0", "") + "," + graph("b", both(R"("C")"), edge(R"("features": [3])")) + "," +
                              graph("c", "[\"C\"]", ""));
  const std::uint32_t which[] = {0, 1, 2}, last[] = {2};
  const auto a = make_graph_arrays<float>(set, which, GraphTask::graph, {});
  EXPECT_EQ(a.features, 1u);
  EXPECT_EQ(a.nodes, 3u);
  EXPECT_EQ(a.edge_features, 1u);
  EXPECT_EQ(make_graph_arrays<float>(set, last, GraphTask::graph, {}).edge_features, 1u);
}

TEST(GraphColumns, EveryPartHasAColumnForEachNodeOfTheLargestGraph) {
  const GraphSet set = set_of(graph("a", "2") + "," + graph("b", "5"));
  const std::uint32_t first[] = {0};
  EXPECT_EQ(make_graph_arrays<float>(set, first, GraphTask::graph, reading(NodeFeatures::identity)).features, 5u);
}

}  // namespace
}  // namespace gradloom
