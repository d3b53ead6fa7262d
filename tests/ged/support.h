// Small graphs and a search without any cleverness, for tests of edit distances.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/ged/ged.h"

namespace gradloom::test {

struct RandomGraphs {
  std::uint32_t most_nodes = 6;
  std::uint32_t labels = 3, edge_labels = 2;  // 0: none
  Direction direction = Direction::undirected;
  double density = 0.4;
  bool loops = false;
};

inline GraphSet random_graphs(const RandomGraphs& o, std::uint32_t count, std::uint64_t seed) {
  GraphSetBuilder set;
  for (std::uint32_t g = 0; g < count; ++g) {
    const RandomStream random(seed, RandomUse::user, 0, g);
    std::uint32_t at = 0;
    GraphBuilder graph(o.direction);
    const std::uint32_t n = random.below(at++, o.most_nodes + 1);
    for (std::uint32_t i = 0; i < n; ++i) {
      NodeValues values;
      if (o.labels > 0) values.label = set.node_labels.intern(std::to_string(random.below(at++, o.labels)));
      graph.add_node(values).or_throw();
    }
    for (std::uint32_t a = 0; a < n; ++a)
      for (std::uint32_t b = o.direction == Direction::directed ? 0 : a; b < n; ++b) {
        if ((a == b && !o.loops) || random.uniform(at++) >= o.density) continue;
        EdgeValues values;
        if (o.edge_labels > 0) values.label = set.edge_labels.intern(std::to_string(random.below(at++, o.edge_labels)));
        graph.add_edge(a, b, values).or_throw();
      }
    set.add(graph, std::to_string(g));
  }
  // So that costs may name every label.
  for (std::uint32_t l = 0; l < o.labels; ++l) set.node_labels.intern(std::to_string(l));
  for (std::uint32_t l = 0; l < o.edge_labels; ++l) set.edge_labels.intern(std::to_string(l));
  return set.finish();
}

struct Best {
  double cost = 0.0;
  ged::Mapping mapping;
};

// Every mapping, in lexicographic order with "deleted" last; the first of the cheapest.
inline Best brute_force(const Graph& first, const Graph& second, const ged::CostTable& costs) {
  Best best;
  best.cost = -1.0;
  ged::Mapping mapping(first.nodes(), ged::kErased);
  std::vector<bool> used(second.nodes());
  const auto visit = [&](auto&& self, std::uint32_t i) -> void {
    if (i == first.nodes()) {
      const double cost = ged::mapping_cost(first, second, costs, mapping);
      if (best.cost >= 0.0 && cost >= best.cost) return;
      best = {cost, mapping};
      return;
    }
    for (std::uint32_t j = 0; j < second.nodes(); ++j) {
      if (used[j]) continue;
      used[j] = true;
      mapping[i] = j;
      self(self, i + 1);
      used[j] = false;
    }
    mapping[i] = ged::kErased;
    self(self, i + 1);
  };
  visit(visit, 0);
  return best;
}

}  // namespace gradloom::test
