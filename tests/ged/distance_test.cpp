#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ged/support.h"
#include "tests/support/sanitized.h"

namespace gradloom::ged {
namespace {

using test::brute_force;
using test::random_graphs;
using testing::HasSubstr;

struct Case {
  std::string name;
  test::RandomGraphs graphs;
  Costs costs;
};

Costs numbers(const char* text) { return parse_costs(text).or_throw(); }

Costs table() {
  Costs c = numbers("1.5,2,0.75,1.25");
  c.node_pairs = {{"0", "1", 0.5}, {"2", "0", 6.0}, {"1", "1", 0.25}};
  c.edge_pairs = {{"0", "1", 9.0}};
  c.node_deletes = {{"0", 1.0}};
  c.node_inserts = {{"2", 3.0}};
  c.edge_deletes = {{"1", 0.5}};
  return c;
}

std::vector<Case> cases() {
  const test::RandomGraphs plain{.most_nodes = 5};
  const test::RandomGraphs directed{.most_nodes = 4, .direction = Direction::directed, .loops = true};
  const test::RandomGraphs bare{.most_nodes = 6, .labels = 0, .edge_labels = 0, .density = 0.5};
  return {{"uniform", plain, uniform_costs()},
          {"topology", plain, topology_costs()},
          {"bare", bare, uniform_costs()},
          {"directed", directed, uniform_costs()},
          {"decimal", plain, numbers("0.3,0.7,0.1,0.2")},
          {"thirds", plain,
           [] {
             Costs c;
             c.node_sub = 1.0 / 3.0;
             c.edge_insert = 2.0 / 7.0;
             return c;
           }()},
          {"dear substitution", plain, numbers("5,1,5,1")},
          {"table", plain, table()},
          {"directed table", directed, table()},
          {"free", plain, numbers("0,1,0,0")}};
}

// Both searches, on every sort of costs, against all mappings there are: cost, mapping, and bounds around them.
TEST(EditDistance, EqualsTheBestOfAllMappings) {
  const Exec ex({.threads = 1});
  for (const Case& c : cases()) {
    const GraphSet set = random_graphs(c.graphs, 16, 11);
    const CostTable costs(c.costs, set.node_labels, set.edge_labels);
    for (std::size_t i = 0; i < set.size(); ++i)
      for (std::size_t j = 0; j < set.size(); ++j) {
        SCOPED_TRACE(c.name + ": " + std::to_string(i) + ", " + std::to_string(j));
        const Graph &a = set.graphs[i], &b = set.graphs[j];
        const test::Best best = brute_force(a, b, costs);
        for (const Solver solver : {Solver::depth_first, Solver::best_first}) {
          SCOPED_TRACE(solver == Solver::depth_first ? "depth first" : "best first");
          const Distance d = edit_distance(ex, a, b, costs, {.solver = solver});
          ASSERT_TRUE(d.exact);
          ASSERT_EQ(d.upper, best.cost);
          ASSERT_EQ(d.lower, d.upper);
          ASSERT_TRUE(d.smallest);
          ASSERT_EQ(d.mapping, best.mapping);
        }
        ASSERT_LE(label_bound(a, b, costs), best.cost);
        ASSERT_LE(assignment_bound(a, b, costs), best.cost);
      }
  }
}

// Below, at and above the distance, and between two possible costs.
TEST(EditDistance, IsWithinAThresholdExactlyWhenItIsNotAboveIt) {
  const Exec ex({.threads = 1});
  for (const Case& c : cases()) {
    const GraphSet set = random_graphs(c.graphs, 10, 12);
    const CostTable costs(c.costs, set.node_labels, set.edge_labels);
    for (std::size_t i = 0; i < set.size(); ++i)
      for (std::size_t j = 0; j < set.size(); ++j) {
        SCOPED_TRACE(c.name + ": " + std::to_string(i) + ", " + std::to_string(j));
        const Graph &a = set.graphs[i], &b = set.graphs[j];
        const double exact = edit_distance(ex, a, b, costs, {.ties = Ties::any}).upper;
        for (const double threshold : {0.0, exact - 0.4, exact - 1e-3, exact, exact + 1e-3, exact + 1.7, 1e30}) {
          if (threshold < 0) continue;
          const Distance d = edit_distance(ex, a, b, costs, {.threshold = threshold});
          ASSERT_TRUE(d.within.has_value());
          ASSERT_EQ(*d.within, exact <= threshold) << exact << " and " << threshold;
          ASSERT_LE(d.lower, exact);
          ASSERT_GE(d.upper, exact);
          ASSERT_EQ(mapping_cost(a, b, costs, d.mapping), d.upper);
        }
      }
  }
}

TEST(EditDistance, DoesNotClaimToBeWithinAThresholdWhenALimitCameFirst) {
  const Exec ex({.threads = 1});
  const GraphSet set = random_graphs({.most_nodes = 40, .labels = 0, .edge_labels = 0, .density = 0.5}, 6, 3);
  const CostTable costs(uniform_costs(), set.node_labels, set.edge_labels);
  std::size_t open = 0;
  for (std::size_t i = 0; i < set.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Graph &a = set.graphs[i], &b = set.graphs[j];
      const Limits few{.expansions = 2};
      const Distance bracket = edit_distance(ex, a, b, costs, {.limits = few});
      const double threshold = (bracket.lower + bracket.upper) / 2;
      const Distance d = edit_distance(ex, a, b, costs, {.limits = few, .threshold = threshold});
      if (d.within)
        EXPECT_TRUE(*d.within ? d.upper <= threshold : d.lower > threshold);
      else
        EXPECT_TRUE(d.lower <= threshold && d.upper > threshold);
      open += !d.within;
    }
  EXPECT_GT(open, 0u);
  EXPECT_THROW(edit_distance(ex, set.graphs[0], set.graphs[1], costs, {.threshold = -1.0}), Exception);
  EXPECT_THROW(edit_distance(ex, set.graphs[0], set.graphs[1], costs, {.solver = Solver::best_first, .threshold = 1.0}),
               Exception);
}

TEST(EditDistance, ASearchFindsWhatAllPairsSay) {
  const Exec ex({.threads = 1});
  const GraphSet set = random_graphs({.most_nodes = 6}, 30, 4);
  const CostTable costs(uniform_costs(), set.node_labels, set.edge_labels);
  const AllPairs pairs = all_pairs(ex, set, costs);
  for (const double threshold : {0.0, 2.0, 4.5, 100.0}) {
    std::vector<std::size_t> expected, found;
    for (std::size_t i = 0; i + 1 < set.size(); ++i)
      if (pairs.upper[AllPairs::at(29, i)] <= threshold) expected.push_back(i);
    double before = 0.0;
    for (const Found& f : search(ex, set, 29, costs, threshold)) {
      EXPECT_TRUE(f.within);
      EXPECT_EQ(f.upper, pairs.upper[AllPairs::at(29, f.graph)]);
      EXPECT_GE(f.upper, before);
      before = f.upper;
      found.push_back(f.graph);
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected);
  }
  EXPECT_THROW(search(ex, set, 30, costs, 1.0), Exception);
}

TEST(EditDistance, IsZeroForARenumberedGraphAndSymmetric) {
  const Exec ex({.threads = 1});
  const GraphSet set = random_graphs({.most_nodes = 12, .density = 0.25}, 8, 3);
  const CostTable costs(uniform_costs(), set.node_labels, set.edge_labels);
  for (const Graph& g : set.graphs) {
    GraphBuilder builder(Direction::undirected);
    const std::uint32_t n = g.nodes();
    for (std::uint32_t i = 0; i < n; ++i) builder.add_node({.label = g.node_labels()[n - 1 - i]}).or_throw();
    for (std::uint32_t e = 0; e < g.edges(); ++e)
      builder.add_edge(n - 1 - g.edge_from()[e], n - 1 - g.edge_to()[e], {.label = g.edge_labels()[e]}).or_throw();
    EXPECT_EQ(edit_distance(ex, g, builder.build(), costs).upper, 0.0);
  }
  for (std::size_t i = 1; i < set.size(); ++i)
    EXPECT_EQ(edit_distance(ex, set.graphs[i - 1], set.graphs[i], costs).upper,
              edit_distance(ex, set.graphs[i], set.graphs[i - 1], costs).upper);
}

Graph ring(std::uint32_t n, std::uint32_t chord) {
  GraphBuilder builder(Direction::undirected);
  for (std::uint32_t i = 0; i < n; ++i) builder.add_node().or_throw();
  for (std::uint32_t i = 0; i < n; ++i) {
    builder.add_edge(i, (i + 1) % n).or_throw();
    if (chord > 0 && !builder.has_edge(i, (i + chord) % n)) builder.add_edge(i, (i + chord) % n).or_throw();
  }
  return builder.build();
}

// No labels and many symmetries: the search cannot finish, and says so.
TEST(EditDistance, BracketsWhatItCannotFinish) {
  const Exec ex({.threads = 1});
  const Graph a = ring(24, 7), b = ring(26, 5);
  const CostTable costs(topology_costs(), {}, {});
  const Distance d = edit_distance(ex, a, b, costs, {.limits = {.expansions = 2000}});
  EXPECT_FALSE(d.exact);
  EXPECT_LT(d.lower, d.upper);
  EXPECT_GE(d.lower, 2.0);
  EXPECT_LE(d.expanded, 2000u);
  EXPECT_EQ(mapping_cost(a, b, costs, d.mapping), d.upper);
  const Distance timed = edit_distance(ex, a, b, costs, {.limits = {.seconds = 0.05}});
  EXPECT_LE(timed.lower, timed.upper);
  EXPECT_LT(timed.seconds, 5.0);
  const Distance second = edit_distance(ex, a, b, costs, {.solver = Solver::best_first, .limits = {.expansions = 50}});
  EXPECT_FALSE(second.exact);
  EXPECT_LE(second.lower, second.upper);
}

TEST(EditDistance, AnyLimitKeepsTheBracketAroundTheDistance) {
  const Exec ex({.threads = 1});
  const GraphSet set = random_graphs({.most_nodes = 9, .density = 0.35}, 12, 8);
  const CostTable costs(uniform_costs(), set.node_labels, set.edge_labels);
  for (std::size_t i = 1; i < set.size(); ++i) {
    const Graph &a = set.graphs[i - 1], &b = set.graphs[i];
    const double distance = edit_distance(ex, a, b, costs).upper;
    for (std::uint64_t limit : {1, 2, 5, 17, 60, 5000}) {
      const Distance d = edit_distance(ex, a, b, costs, {.limits = {.expansions = limit}});
      EXPECT_LE(d.lower, distance);
      EXPECT_GE(d.upper, distance);
      EXPECT_TRUE(!d.exact || d.upper == distance);
      EXPECT_EQ(mapping_cost(a, b, costs, d.mapping), d.upper);
      EXPECT_LE(d.expanded, limit);
    }
  }
}

// The same cost, mapping and even number of expansions for any number of threads, with and without a limit.
TEST(EditDistance, DoesNotDependOnThreads) {
  const Exec one({.threads = 1}), two({.threads = 2}), three({.threads = 3}), eight({.threads = 8});
  const std::vector<Graph> graphs = {ring(18, 7), ring(20, 5), ring(17, 3)};
  const CostTable costs(uniform_costs(), {}, {});
  std::uint64_t most = 0;
  for (std::size_t i = 1; i < graphs.size(); ++i)
    for (std::uint64_t limit : test::thinned<std::uint64_t>({9000, 60000})) {
      const Options o{.limits = {.expansions = limit}};
      const Distance expected = edit_distance(one, graphs[i - 1], graphs[i], costs, o);
      most = std::max(most, expected.expanded);
      for (const Exec* ex : {&two, &three, &eight}) {
        const Distance d = edit_distance(*ex, graphs[i - 1], graphs[i], costs, o);
        EXPECT_EQ(d.lower, expected.lower);
        EXPECT_EQ(d.upper, expected.upper);
        EXPECT_EQ(d.mapping, expected.mapping);
        EXPECT_EQ(d.expanded, expected.expanded);
        EXPECT_EQ(d.exact, expected.exact);
      }
    }
  EXPECT_GT(most, 8192u) << "the graphs are too easy to need more than one round";
}

TEST(EditPath, AddsUpToTheDistanceAndTurnsOneGraphIntoTheOther) {
  const Exec ex({.threads = 1});
  const GraphSet set = random_graphs({.most_nodes = 7}, 10, 5);
  const CostTable costs(uniform_costs(), set.node_labels, set.edge_labels);
  for (std::size_t i = 1; i < set.size(); ++i) {
    const Graph &a = set.graphs[i - 1], &b = set.graphs[i];
    const Distance d = edit_distance(ex, a, b, costs);
    double total = 0.0;
    std::uint32_t nodes = a.nodes(), edges = a.edges();
    for (const EditOperation& e : edit_path(a, b, costs, d.mapping)) {
      total += e.cost;
      nodes += (e.edit == Edit::node_insert) - (e.edit == Edit::node_delete);
      edges += (e.edit == Edit::edge_insert) - (e.edit == Edit::edge_delete);
    }
    EXPECT_EQ(total, d.upper);
    EXPECT_EQ(nodes, b.nodes());
    EXPECT_EQ(edges, b.edges());
  }
}

TEST(EditDistance, RefusesWhatCannotBeCompared) {
  const Exec ex({.threads = 1});
  const GraphSet u = random_graphs({.most_nodes = 4}, 6, 1);
  const GraphSet v = random_graphs({.most_nodes = 4, .direction = Direction::directed}, 6, 1);
  const CostTable costs(uniform_costs(), {}, {});
  bool refused = false;
  for (std::size_t i = 0; i < 6; ++i)
    if (u.graphs[i].nodes() > 0 && v.graphs[i].nodes() > 0) {
      EXPECT_THROW(edit_distance(ex, u.graphs[i], v.graphs[i], costs), Exception);
      refused = true;
    }
  EXPECT_TRUE(refused);
  EXPECT_THROW(mapping_cost(ring(4, 0), ring(4, 0), costs, {0, 0, 1, 2}), Exception);
  EXPECT_THROW(mapping_cost(ring(4, 0), ring(4, 0), costs, {0, 1, 2}), Exception);
  EXPECT_THROW(mapping_cost(ring(4, 0), ring(4, 0), costs, {0, 1, 2, 7}), Exception);
}

TEST(EditCosts, RefuseNonsense) {
  const LabelTable labels({"C", "N"});
  const auto error = [&](const Costs& c) -> std::string {
    try {
      CostTable(c, labels, labels);
      return "no error";
    } catch (const Exception& e) {
      return e.what();
    }
  };
  Costs negative, unknown, ignored = topology_costs();
  negative.node_sub = -1;
  unknown.node_pairs = {{"C", "M", 1.0}};
  ignored.node_deletes = {{"C", 1.0}};
  EXPECT_THAT(error(negative), HasSubstr("-1"));
  EXPECT_THAT(error(unknown), HasSubstr("'M', which no graph has"));
  EXPECT_THAT(error(ignored), HasSubstr("ignore labels"));
  EXPECT_FALSE(parse_costs("1,1,1").ok());
  EXPECT_FALSE(parse_costs("1,1,1,1,1").ok());
  EXPECT_FALSE(parse_costs("1,1,-1,1").ok());
  EXPECT_FALSE(parse_costs("1,1,inf,1").ok());
  EXPECT_THAT(parse_costs_json("{\"node_sup\": 1}", "c.json").error().message, HasSubstr("the nearest is 'node_sub'"));
  EXPECT_FALSE(parse_costs_json("[1]", "c.json").ok());
  const auto json_error = [](const char* text) { return parse_costs_json(text, "c.json").error().message; };
  EXPECT_THAT(json_error("{\"node_sub\": -1}"),
              HasSubstr("c.json: 'node_sub' must be a number from 0 to 1e+12, not -1"));
  EXPECT_THAT(json_error("{\"node_deletes\": {\"C\": \"x\"}}"),
              HasSubstr("c.json: 'node_deletes': the cost of 'C' must be"));
  EXPECT_THAT(json_error("{\"edge_pairs\": [[\"C\", \"N\", null]]}"),
              HasSubstr("c.json: 'edge_pairs': the cost of \"C\" and"));
  EXPECT_THAT(json_error("{\"node_sub\": 1, \"node_sub\": 2}"), HasSubstr("'node_sub' appears twice"));
  EXPECT_THAT(json_error("{\"node_pairs\": [[\"C\", \"N\", 1], [\"C\", \"N\", 2]]}"),
              HasSubstr("'node_pairs' has the pair \"C\", \"N\" twice"));
  const Costs c =
      parse_costs_json("{\"labels\": \"compare\", \"node_indel\": 2, \"node_pairs\": [[\"C\", \"N\", 0.5]]}", "c.json")
          .or_throw();
  EXPECT_EQ(CostTable(c, labels, labels).value(CostTable(c, labels, labels).node_sub(1, 0)), 0.5);
}

}  // namespace
}  // namespace gradloom::ged
