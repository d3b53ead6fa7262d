#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "gradloom/ged/pair_solver.h"
#include "gradloom/ged/upper.h"
#include "tests/ged/support.h"

namespace gradloom::ged {
namespace {

using test::random_graphs;

void expect_mapping(const Problem& p, const std::vector<std::uint32_t>& image) {
  ASSERT_EQ(image.size(), p.rows());
  std::vector<bool> used(p.columns());
  for (std::uint32_t j : image) {
    if (j == kErased) continue;
    ASSERT_LT(j, p.columns());
    EXPECT_FALSE(used[j]);
    used[j] = true;
  }
}

void expect_upper_bounds(Direction direction, const char* edits) {
  const GraphSet set = random_graphs({.most_nodes = 9, .direction = direction, .density = 0.35}, 14, 2);
  const CostTable costs(parse_costs(edits).or_throw(), set.node_labels, set.edge_labels);
  std::vector<DenseGraph> dense;
  for (const Graph& g : set.graphs) dense.emplace_back(g, Labels::compare);
  PairSolver solver;
  for (std::size_t i = 1; i < set.size(); ++i) {
    const Problem& p = solver.set(dense[i - 1], dense[i], costs);
    const Cost distance = solver.solve(nullptr, {}).upper;
    std::vector<std::uint32_t> image = greedy_mapping(p);
    expect_mapping(p, image);
    const Cost before = p.cost(image);
    EXPECT_GE(before, distance);
    const Cost after = improve_by_swaps(p, image);
    expect_mapping(p, image);
    EXPECT_EQ(after, p.cost(image));
    EXPECT_LE(after, before);
    EXPECT_GE(after, distance);
    EXPECT_EQ(costs.value(p.cost(greedy_mapping(p))),
              mapping_cost(set.graphs[i - 1], set.graphs[i], costs, p.to_first(greedy_mapping(p))));
  }
}

TEST(UpperBounds, AreMappingsAboveTheDistanceAndSwapsNeverHurt) {
  for (const Direction direction : {Direction::undirected, Direction::directed}) {
    expect_upper_bounds(direction, "1,2,0.5,1");
    expect_upper_bounds(direction, "3,1,0.5,1");  // deleting and inserting is cheaper than another label
  }
}

TEST(UpperBounds, AreLeftWhereNoSwapAndNoMoveHelps) {
  const GraphSet set = random_graphs({.most_nodes = 9, .direction = Direction::directed, .density = 0.35}, 14, 3);
  const CostTable costs(parse_costs("3,1,0.5,1").or_throw(), set.node_labels, set.edge_labels);
  Problem p;
  for (std::size_t i = 1; i < set.size(); ++i) {
    const DenseGraph a(set.graphs[i - 1], Labels::compare), b(set.graphs[i], Labels::compare);
    p.set(a, b, costs);
    std::vector<std::uint32_t> image = greedy_mapping(p);
    const Cost least = improve_by_swaps(p, image);
    for (std::uint32_t r = 0; r < p.rows(); ++r) {
      for (std::uint32_t other = 0; other < r; ++other) {
        std::swap(image[r], image[other]);
        EXPECT_GE(p.cost(image), least);
        std::swap(image[r], image[other]);
      }
      for (std::uint32_t j = 0; j <= p.columns(); ++j) {
        if (j < p.columns() && std::find(image.begin(), image.end(), j) != image.end()) continue;
        const std::uint32_t before = std::exchange(image[r], j < p.columns() ? j : kErased);
        EXPECT_GE(p.cost(image), least);
        image[r] = before;
      }
    }
  }
}

TEST(Deadlines, ThatHavePassedStillLeaveAMappingAndABracket) {
  const GraphSet set = random_graphs({.most_nodes = 40, .density = 0.2}, 6, 5);
  const CostTable costs(uniform_costs(), set.node_labels, set.edge_labels);
  std::vector<DenseGraph> dense;
  for (const Graph& g : set.graphs) dense.emplace_back(g, Labels::compare);
  PairSolver solver;
  const SearchLimits passed{.deadline = {std::chrono::steady_clock::time_point::min()}};
  const SearchLimits short_search{.expansions = 50};
  for (std::size_t i = 1; i < set.size(); ++i) {
    const Problem& p = solver.set(dense[i - 1], dense[i], costs);
    const PairAnswer late = solver.solve(nullptr, passed), known = solver.solve(nullptr, short_search);
    expect_mapping(p, late.image);
    EXPECT_EQ(late.upper, p.cost(late.image));
    // Two brackets around one distance overlap.
    EXPECT_LE(late.lower, known.upper);
    EXPECT_LE(known.lower, late.upper);
    EXPECT_LE(late.expanded, 1u);
  }
}

// Updating the assignment after a mapped pair gives what solving it anew would: the cheapest over all permutations.
TEST(Assignment, StaysOptimalWhileNodesAreMapped) {
  const GraphSet set = random_graphs({.most_nodes = 6, .density = 0.5}, 12, 6);
  const CostTable costs(uniform_costs(), set.node_labels, set.edge_labels);
  for (std::size_t g = 1; g < set.size(); ++g) {
    const DenseGraph a(set.graphs[g - 1], Labels::compare), b(set.graphs[g], Labels::compare);
    Problem p;
    p.set(a, b, costs);
    Assigner assigner;
    assigner.set(p);
    OpenNodes node, next;
    assigner.root(node);
    Cost before = 0;
    for (std::uint32_t i = 0;; ++i) {
      std::vector<std::uint16_t> order(node.columns);
      Cost best = std::numeric_limits<Cost>::max();
      do {
        Cost sum = 0;
        for (std::size_t k = 0; k < order.size(); ++k) sum += assigner.entry(node, node.rows[k], order[k]);
        best = std::min(best, sum);
      } while (std::next_permutation(order.begin(), order.end()));
      EXPECT_EQ(node.dual, best);
      EXPECT_GE(node.bound(), before) << "bounds never fall on the way down";
      before = node.bound();
      if (i == p.rows()) break;
      ASSERT_TRUE(
          assigner.child(node, i, node.columns[node.columns.size() / 2], std::numeric_limits<Cost>::max(), next));
      std::swap(node, next);
    }
  }
}

TEST(AllPairs, AgreesWithSinglePairsForAnyNumberOfThreads) {
  const GraphSet set = random_graphs({.most_nodes = 8}, 14, 9);
  const CostTable costs(uniform_costs(), set.node_labels, set.edge_labels);
  const Exec one({.threads = 1}), three({.threads = 3});
  std::size_t last = 0;
  const AllPairs a = all_pairs(one, set, costs, {.progress = [&](std::size_t done, std::size_t) { last = done; }});
  const AllPairs b = all_pairs(three, set, costs);
  EXPECT_EQ(last, 91u);
  EXPECT_EQ(a.upper, b.upper);
  EXPECT_EQ(a.expanded, b.expanded);
  EXPECT_EQ(a.exact, 91u);
  for (std::size_t i = 1; i < set.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_EQ(a.upper[AllPairs::at(i, j)],
                edit_distance(one, set.graphs[j], set.graphs[i], costs, {.ties = Ties::any}).upper);
}

TEST(AllPairs, ToldToStopEndSoonWithBoundsOfEveryPair) {
  const GraphSet set = random_graphs({.most_nodes = 8}, 14, 9);
  const CostTable costs(uniform_costs(), set.node_labels, set.edge_labels);
  const Exec one({.threads = 1}), two({.threads = 2});
  const AllPairs exact = all_pairs(two, set, costs);
  for (const bool at_once : {true, false}) {
    std::atomic<bool> stop = at_once;
    const Exec& ex = at_once ? two : one;  // a second thread may do all the work before the caller hears of any
    int told = 0;
    const auto progress = [&](std::size_t, std::size_t) { ++told, stop = true; };
    const AllPairs r = all_pairs(ex, set, costs, {.progress = progress, .stop = &stop});
    EXPECT_EQ(told, at_once ? 0 : 1);
    for (std::size_t at = 0; at < exact.upper.size(); ++at) {
      EXPECT_LE(r.lower[at], exact.lower[at]);
      EXPECT_GE(r.upper[at], exact.upper[at]);
      EXPECT_TRUE(!at_once || r.expanded[at] == 0);
    }
    EXPECT_LT(r.exact, exact.exact);
  }
}

TEST(AllPairs, AndSearchesTellTheirProgressOnTheThreadOfTheCaller) {
  const GraphSet set = random_graphs({.most_nodes = 8}, 14, 9);
  const CostTable costs(uniform_costs(), set.node_labels, set.edge_labels);
  const Exec ex({.threads = 3});
  const std::thread::id caller = std::this_thread::get_id();
  std::size_t last = 0;
  AllPairsOptions options{.progress = [&](std::size_t done, std::size_t total) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_GT(done, last);
    EXPECT_LE(done, total);
    last = done;
  }};
  (void)all_pairs(ex, set, costs, options);
  EXPECT_EQ(last, 91u);
  last = 0;
  (void)search(ex, set, 0, costs, 3.0, options);
  EXPECT_EQ(last, 14u);
}

}  // namespace
}  // namespace gradloom::ged
