#include "gradloom/ged/soft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/ged/support.h"

namespace gradloom::ged {
namespace {

// A soft problem that owns its arrays.
template <class T>
struct Soft {
  std::vector<T> cost, a, b;
  SoftInputs<T> in;

  Soft(std::size_t n1, std::size_t n2, std::size_t kinds, Direction direction, std::uint64_t seed) {
    const RandomStream random(seed, RandomUse::check);
    std::uint32_t at = 0;
    in.n1 = n1;
    in.n2 = n2;
    in.kinds = kinds;
    in.direction = direction;
    in.edge_sub = T(0.6);
    in.edge_delete = T(0.9);
    in.edge_insert = T(0.7);
    for (std::size_t k = 0; k < (n1 + 1) * (n2 + 1); ++k) cost.push_back(static_cast<T>(random.uniform(at++) * 2));
    const auto matrix = [&](std::size_t n) {
      std::vector<T> m(kinds * n * n, T(0));
      for (std::size_t k = 0; k < kinds; ++k)
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t j = 0; j < n; ++j) {
            if (i == j) continue;
            T& x = m[(k * n + i) * n + j];
            x = direction == Direction::undirected && j < i ? m[(k * n + j) * n + i]
                                                            : static_cast<T>(random.uniform(at++));
          }
      return m;
    };
    a = matrix(n1);
    b = matrix(n2);
    bind();
  }
  void bind() {
    in.cost = cost;
    in.a = a;
    in.b = b;
  }
};

// The largest error of an analytic gradient against central differences, relative as the gradient check counts it.
double worst_error(const std::vector<double>& analytic, std::vector<double>& values,
                   const std::function<double()>& evaluate) {
  double largest = 0.0, worst = 0.0;
  for (double g : analytic) largest = std::max(largest, std::abs(g));
  EXPECT_GT(largest, 0.0) << "an all-zero gradient proves nothing";
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double kept = values[k], h = 1e-5;
    values[k] = kept + h;
    const double up = evaluate();
    values[k] = kept - h;
    const double down = evaluate();
    values[k] = kept;
    worst = std::max(worst,
                     std::abs((up - down) / (2 * h) - analytic[k]) / std::max(std::abs(analytic[k]), 1e-3 * largest));
  }
  return worst;
}

struct Sizes {
  std::size_t n1, n2, kinds;
  Direction direction;
};

TEST(SoftDistance, BackwardMatchesCentralDifferences) {
  for (const Sizes& s : {Sizes{1, 1, 1, Direction::undirected}, Sizes{4, 3, 1, Direction::undirected},
                         Sizes{3, 5, 2, Direction::undirected}, Sizes{4, 4, 1, Direction::directed},
                         Sizes{3, 2, 3, Direction::directed}}) {
    Soft<double> soft(s.n1, s.n2, s.kinds, s.direction, 7 + s.n1 + s.kinds);
    const SoftOptions o{.temperature = 0.5, .iterations = 12, .rounds = 3};
    SoftTape<double> tape;
    const auto evaluate = [&] { return soft_distance(soft.in, o, tape); };
    evaluate();
    std::vector<double> dcost(soft.cost.size()), da(soft.a.size());
    soft_distance_backward<double>(soft.in, o, tape, 1.0, dcost, da);
    EXPECT_LE(worst_error(dcost, soft.cost, evaluate), 1e-6) << s.n1 << " x " << s.n2;
    if (s.n1 == 1) continue;
    // The diagonal stays zero by contract; the derivative exists there all the same.
    EXPECT_LE(worst_error(da, soft.a, evaluate), 1e-6) << s.n1 << " x " << s.n2;
    std::vector<double> wrong = dcost;
    wrong[0] *= 1.01;
    EXPECT_GT(worst_error(wrong, soft.cost, evaluate), 1e-4) << "a wrong gradient must be caught";
    wrong = da;
    std::swap(wrong[1], wrong[s.n1 + 2]);
    EXPECT_GT(worst_error(wrong, soft.a, evaluate), 1e-4) << "swapped entries must be caught";
  }
}

TEST(SoftDistance, ScalesItsGradientAndOverwrites) {
  Soft<double> soft(3, 3, 1, Direction::undirected, 1);
  SoftTape<double> tape;
  soft_distance(soft.in, {}, tape);
  std::vector<double> once(16, 99.0), twice(16, -99.0);
  soft_distance_backward<double>(soft.in, {}, tape, 1.0, once, {});
  soft_distance_backward<double>(soft.in, {}, tape, 2.0, twice, {});
  for (std::size_t k = 0; k < 16; ++k) EXPECT_NEAR(twice[k], 2 * once[k], 1e-12 * (1 + std::abs(once[k])));
  EXPECT_EQ(once.back(), 0.0);
}

TEST(SoftNodeCosts, BackwardMatchesCentralDifferences) {
  const RandomStream random(3, RandomUse::check);
  std::vector<double> label(3 * 4), table(4 * 3), insert(2), cost(4 * 3), weight(4 * 3);
  std::uint32_t at = 0;
  for (auto* v : {&label, &table, &insert, &weight})
    for (double& x : *v) x = random.uniform(at++);
  const auto evaluate = [&] {
    soft_node_costs<double>(label, table, insert, 3, cost);
    double sum = 0.0;
    for (std::size_t k = 0; k + 1 < cost.size(); ++k) sum += weight[k] * cost[k];
    return sum;
  };
  evaluate();
  std::vector<double> dlabel(label.size());
  soft_node_costs_backward<double>(table, weight, 3, 2, dlabel);
  EXPECT_LE(worst_error(dlabel, label, evaluate), 1e-6);
}

// The inputs that say exactly what a pair of graphs and its costs are.
Soft<double> hard_inputs(const GraphSet& set, const Graph& a, const Graph& b, const CostTable& costs) {
  Soft<double> soft(a.nodes(), b.nodes(), set.edge_labels.size(), a.direction(), 1);
  const std::size_t columns = b.nodes() + 1;
  for (std::uint32_t i = 0; i <= a.nodes(); ++i)
    for (std::uint32_t j = 0; j <= b.nodes(); ++j) {
      double& c = soft.cost[i * columns + j];
      if (i < a.nodes() && j < b.nodes())
        c = costs.value(costs.node_sub(a.node_labels()[i], b.node_labels()[j]));
      else if (i < a.nodes())
        c = costs.value(costs.node_delete(a.node_labels()[i]));
      else if (j < b.nodes())
        c = costs.value(costs.node_insert(b.node_labels()[j]));
    }
  const auto fill = [](const Graph& g, std::vector<double>& m) {
    std::fill(m.begin(), m.end(), 0.0);
    for (std::uint32_t e = 0; e < g.edges(); ++e) {
      const std::size_t n = g.nodes(), k = g.edge_labels()[e], from = g.edge_from()[e], to = g.edge_to()[e];
      m[(k * n + from) * n + to] = 1.0;
      if (g.direction() == Direction::undirected) m[(k * n + to) * n + from] = 1.0;
    }
  };
  fill(a, soft.a);
  fill(b, soft.b);
  soft.in.edge_sub = costs.value(costs.edge_sub(0, 1));
  soft.in.edge_delete = costs.value(costs.edge_delete(0));
  soft.in.edge_insert = costs.value(costs.edge_insert(0));
  soft.bind();
  return soft;
}

TEST(SoftDistance, OfZerosAndOnesIsTheCostOfThatMapping) {
  for (const Direction direction : {Direction::undirected, Direction::directed}) {
    const GraphSet set = test::random_graphs({.most_nodes = 5, .direction = direction}, 12, 17);
    const CostTable costs(parse_costs("0.5,1,0.75,1.25").or_throw(), set.node_labels, set.edge_labels);
    for (std::uint32_t trial = 0; trial < 60; ++trial) {
      const RandomStream random(2, RandomUse::check, 0, trial);
      std::uint32_t at = 0;
      const Graph &a = set.graphs[random.below(at++, 12)], &b = set.graphs[random.below(at++, 12)];
      Mapping mapping(a.nodes(), kErased);
      std::vector<bool> used(b.nodes());
      for (std::uint32_t& to : mapping) {
        const std::uint32_t j = random.below(at++, b.nodes() + 1);
        if (j == b.nodes() || used[j]) continue;
        used[j] = true;
        to = j;
      }
      const std::size_t columns = b.nodes() + 1;
      std::vector<double> p((a.nodes() + 1) * columns, 0.0);
      for (std::uint32_t i = 0; i < a.nodes(); ++i) p[i * columns + std::min(mapping[i], b.nodes())] = 1.0;
      for (std::uint32_t j = 0; j < b.nodes(); ++j) p[a.nodes() * columns + j] = used[j] ? 0.0 : 1.0;
      p.back() = 123.0;
      const Soft<double> soft = hard_inputs(set, a, b, costs);
      EXPECT_DOUBLE_EQ(soft_cost<double>(soft.in, p), mapping_cost(a, b, costs, mapping));
    }
  }
}

TEST(SoftDistance, KeepsTheMarginalsAndApproachesTheDistance) {
  const Exec ex({.threads = 1});
  const GraphSet set = test::random_graphs({.most_nodes = 6, .labels = 4}, 12, 23);
  const CostTable costs(uniform_costs(), set.node_labels, set.edge_labels);
  for (std::size_t g = 1; g < set.size(); ++g) {
    const Graph &a = set.graphs[g - 1], &b = set.graphs[g];
    if (a.nodes() == 0 || b.nodes() == 0) continue;
    const Soft<double> soft = hard_inputs(set, a, b, costs);
    SoftTape<double> tape;
    soft_distance(soft.in, {.temperature = 0.5, .iterations = 500, .rounds = 2}, tape);
    const auto p = tape.matching(a.nodes(), b.nodes());
    for (std::size_t i = 0; i <= a.nodes(); ++i) {
      double sum = 0.0;
      for (std::size_t j = 0; j <= b.nodes(); ++j) sum += p[i * (b.nodes() + 1) + j];
      EXPECT_NEAR(sum, i < a.nodes() ? 1.0 : static_cast<double>(b.nodes()), 1e-3);
    }
  }
  // Distinct labels leave one sensible matching, which a low temperature finds.
  GraphSetBuilder builder;
  GraphBuilder first(Direction::undirected), second(Direction::undirected);
  for (const char* label : {"A", "B", "C", "D"})
    first.add_node({.label = builder.node_labels.intern(label)}).or_throw();
  for (const char* label : {"D", "C", "B"}) second.add_node({.label = builder.node_labels.intern(label)}).or_throw();
  const std::uint32_t edge = builder.edge_labels.intern("1");
  builder.edge_labels.intern("2");
  for (std::uint32_t i = 0; i < 3; ++i) first.add_edge(i, i + 1, {.label = edge}).or_throw();
  second.add_edge(0, 1, {.label = edge}).or_throw();
  builder.add(first, "a");
  builder.add(second, "b");
  const GraphSet pair = builder.finish();
  const CostTable unit(uniform_costs(), pair.node_labels, pair.edge_labels);
  const Soft<double> soft = hard_inputs(pair, pair.graphs[0], pair.graphs[1], unit);
  SoftTape<double> tape;
  // At low temperatures the sums of rows are off by a few parts in the number of iterations, and the distance with
  // them.
  const double distance = edit_distance(ex, pair.graphs[0], pair.graphs[1], unit).upper;
  for (unsigned iterations : {200u, 1000u, 5000u})
    EXPECT_NEAR(soft_distance(soft.in, {.temperature = 0.02, .iterations = iterations, .rounds = 3}, tape), distance,
                5.0 / iterations);
}

TEST(SoftDistance, WorksInFloatAndWithEmptyGraphs) {
  Soft<float> soft(4, 3, 1, Direction::undirected, 5);
  Soft<double> same(4, 3, 1, Direction::undirected, 5);
  SoftTape<float> tape;
  SoftTape<double> tape2;
  EXPECT_NEAR(soft_distance(soft.in, {}, tape), soft_distance(same.in, {}, tape2), 1e-3);
  Soft<double> empty(0, 3, 1, Direction::undirected, 5);
  double expected = 0.0;
  for (std::size_t j = 0; j < 3; ++j) expected += empty.cost[j];
  for (double x : empty.b) expected += 0.5 * empty.in.edge_insert * x;
  EXPECT_NEAR(soft_distance(empty.in, {}, tape2), expected, 1e-12);
  std::vector<double> dcost(4);
  soft_distance_backward<double>(empty.in, {}, tape2, 1.0, dcost, {});
  EXPECT_EQ(dcost, (std::vector<double>{1, 1, 1, 0}));
  EXPECT_THROW(soft_distance(same.in, {.temperature = 0.0}, tape2), Exception);
  same.in.n1 = 5;
  EXPECT_THROW(soft_distance(same.in, {}, tape2), Exception);
}

}  // namespace
}  // namespace gradloom::ged
