// The numbering of nodes for locality, and how node tasks use it.
#include "gradloom/data/graph_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "gradloom/base/random.h"
#include "gradloom/data/graph_dataset.h"

namespace gradloom {
namespace {

// A grid of nodes whose numbers are shuffled; node v has the features v and -v, edges those of their ends' sum.
GraphSet shuffled_grid(std::uint32_t side, Direction direction) {
  std::vector<std::uint32_t> name(side * side);
  random_permutation(RandomStream(11, RandomUse::test), name);
  GraphSetBuilder set;
  set.node_classes.intern("even"), set.node_classes.intern("odd");
  GraphBuilder b(direction);
  for (std::uint32_t v = 0; v < side * side; ++v) {
    const double x[] = {static_cast<double>(v), -static_cast<double>(v)};
    NodeValues values;
    values.features = x, values.node_class = v % 2;
    b.add_node(values).or_throw();
  }
  const auto edge = [&](std::uint32_t from, std::uint32_t to) {
    const double x[] = {static_cast<double>(from) + to};
    EdgeValues values;
    values.features = x, values.weight = 0.5 + from;
    b.add_edge(from, to, values).or_throw();
  };
  for (std::uint32_t i = 0; i < side; ++i)
    for (std::uint32_t j = 0; j < side; ++j) {
      if (i + 1 < side) edge(name[i * side + j], name[(i + 1) * side + j]);
      if (j + 1 < side) edge(name[i * side + j], name[i * side + j + 1]);
    }
  set.add(b, "grid");
  return set.finish();
}

std::size_t bandwidth(const Graph& g, const std::vector<std::uint32_t>& order) {
  std::vector<std::int64_t> row(order.size());
  for (std::size_t r = 0; r < order.size(); ++r) row[order[r]] = static_cast<std::int64_t>(r);
  std::int64_t most = 0;
  for (std::uint32_t e = 0; e < g.edges(); ++e)
    most = std::max(most, std::abs(row[g.edge_from()[e]] - row[g.edge_to()[e]]));
  return static_cast<std::size_t>(most);
}

TEST(LocalityOrder, HasEveryNodeOnceAndNeighboursCloseTogether) {
  for (const Direction direction : {Direction::undirected, Direction::directed}) {
    const GraphSet set = shuffled_grid(30, direction);
    auto order = locality_order(set.graphs[0]);
    EXPECT_LE(bandwidth(set.graphs[0], order), 2 * 30u);
    std::sort(order.begin(), order.end());
    std::vector<std::uint32_t> all(900);
    std::iota(all.begin(), all.end(), 0u);
    EXPECT_EQ(order, all);
  }
}

TEST(LocalityOrder, FollowsAPathFromEndToEnd) {
  GraphBuilder b(Direction::undirected);
  for (int v = 0; v < 6; ++v) b.add_node().or_throw();
  for (const auto& [from, to] : {std::pair(4u, 0u), {0u, 5u}, {5u, 2u}, {2u, 1u}}) b.add_edge(from, to).or_throw();
  // Components in the order of their lowest degree: node 3 is alone. All of it is reversed.
  EXPECT_EQ(locality_order(b.build()), (std::vector<std::uint32_t>{1, 2, 5, 0, 4, 3}));
  EXPECT_TRUE(locality_order(GraphBuilder(Direction::undirected).build()).empty());
}

TEST(NodeArrays, DescribeTheGraphOfTheFileUnderTheRowsOfItsNodes) {
  for (const Direction direction : {Direction::undirected, Direction::directed}) {
    const GraphSet set = shuffled_grid(9, direction);
    const Graph& g = set.graphs[0];
    const std::uint32_t which[] = {0};
    const auto arrays =
        std::make_shared<GraphArrays<double>>(make_graph_arrays<double>(set, which, GraphTask::node, {}));
    const GraphArrays<double>& a = *arrays;
    std::vector<double> weight(g.nodes());
    std::iota(weight.begin(), weight.end(), 1.0);
    const GraphDataset<double> data(arrays, weight);
    ASSERT_EQ(a.row_of.size(), g.nodes());
    std::vector<std::uint32_t> node(g.nodes());
    for (std::uint32_t v = 0; v < g.nodes(); ++v) node[data.row_of(v)] = v;
    for (std::uint32_t r = 0; r < g.nodes(); ++r) {
      const std::uint32_t v = node[r];
      EXPECT_EQ(a.x[r * a.stride], v);
      EXPECT_EQ(a.x[r * a.stride + 1], -static_cast<double>(v));
      EXPECT_EQ(a.label[r], v % 2);
      EXPECT_EQ(data.all().weight[r], v + 1.0);
      std::vector<std::uint32_t> sources, targets;
      for (std::uint32_t e = a.ptr[r]; e < a.ptr[r + 1]; ++e) {
        sources.push_back(node[a.source[e]]);
        EXPECT_EQ(a.edge_x[e * a.edge_stride], static_cast<double>(v) + node[a.source[e]]);
        if (direction == Direction::directed) {
          EXPECT_EQ(a.edge_weight[e], 0.5 + node[a.source[e]]);
        }
        if (e > a.ptr[r]) {
          EXPECT_LT(a.source[e - 1], a.source[e]);
        }
      }
      for (std::uint32_t q = a.out_ptr[r]; q < a.out_ptr[r + 1]; ++q) {
        targets.push_back(node[a.out_target[q]]);
        EXPECT_EQ(a.source[a.slot[q]], r);
        EXPECT_GE(a.slot[q], a.ptr[a.out_target[q]]);
        EXPECT_LT(a.slot[q], a.ptr[a.out_target[q] + 1]);
      }
      std::sort(sources.begin(), sources.end());
      std::sort(targets.begin(), targets.end());
      const auto in = g.in_source().subspan(g.in_ptr()[v], g.in_ptr()[v + 1] - g.in_ptr()[v]);
      const auto out = g.out_target().subspan(g.out_ptr()[v], g.out_ptr()[v + 1] - g.out_ptr()[v]);
      EXPECT_TRUE(std::ranges::equal(sources, in));
      EXPECT_TRUE(std::ranges::equal(targets, out));
    }
  }
}

}  // namespace
}  // namespace gradloom
