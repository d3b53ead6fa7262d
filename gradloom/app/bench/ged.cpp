#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "gradloom/app/ged/run.h"
#include "gradloom/base/random.h"

namespace gradloom::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kMostForBestFirst = 8;  // nodes: the second search keeps every open mapping in memory
constexpr std::size_t kChecked = 60;            // pairs

// Sparse connected graphs with few labels, most nodes carrying the same one, as molecules have.
GraphSet random_graphs(const BenchGedOptions& o) {
  GraphSetBuilder set;
  for (std::uint32_t g = 0; g < o.graphs; ++g) {
    const RandomStream random(o.seed, RandomUse::data, 0, g);
    std::uint32_t at = 0;
    GraphBuilder graph(Direction::undirected);
    const std::uint32_t nodes = std::max(1u, o.nodes - random.below(at++, std::max(1u, o.nodes / 3)));
    const char* names[] = {"C", "C", "C", "C", "N", "O", "S"};
    for (std::uint32_t i = 0; i < nodes; ++i)
      graph.add_node({.label = set.node_labels.intern(names[random.below(at++, 7)])}).or_throw();
    const std::uint32_t label = set.edge_labels.intern("1");
    for (std::uint32_t i = 1; i < nodes; ++i) graph.add_edge(random.below(at++, i), i, {.label = label}).or_throw();
    for (std::uint32_t extra = 0; extra < nodes / 5; ++extra) {
      const std::uint32_t a = random.below(at++, nodes), b = random.below(at++, nodes);
      if (a != b && !graph.has_edge(a, b)) graph.add_edge(a, b, {.label = label}).or_throw();
    }
    set.add(graph, fmt::format("{}", g));
  }
  return set.finish();
}

// Some pairs, spread over the set: the mapping costs what was said, bounds are in order, both searches agree.
std::size_t check(const Exec& ex, const GraphSet& set, const ged::CostTable& costs, const ged::Limits& limits) {
  std::size_t checked = 0;
  const std::size_t total = ged::AllPairs::at(set.size(), 0), stride = std::max<std::size_t>(1, total / kChecked);
  for (std::size_t at = 0, i = 1; at < total; at += stride) {
    while (ged::AllPairs::at(i + 1, 0) <= at) ++i;
    const Graph &a = set.graphs[at - ged::AllPairs::at(i, 0)], &b = set.graphs[i];
    const auto broken = [&](const char* what) {
      throw Exception(ErrorCode::numeric, fmt::format("graphs '{}' and '{}': {}; this build is broken, its speed means "
                                                      "nothing",
                                                      set.ids[at - ged::AllPairs::at(i, 0)], set.ids[i], what));
    };
    const ged::Distance d = ged::edit_distance(ex, a, b, costs, {.ties = ged::Ties::any, .limits = limits});
    if (ged::mapping_cost(a, b, costs, d.mapping) != d.upper)
      broken("the cost of the mapping differs from the upper bound");
    if (d.lower > d.upper || ged::label_bound(a, b, costs) > d.upper || ged::assignment_bound(a, b, costs) > d.upper)
      broken("a lower bound is above the upper bound");
    if (std::max(a.nodes(), b.nodes()) <= kMostForBestFirst) {
      const ged::Distance second = ged::edit_distance(
          ex, a, b, costs, {.solver = ged::Solver::best_first, .ties = ged::Ties::any, .limits = limits});
      if (second.lower > d.upper || d.lower > second.upper) broken("the two searches disagree");
    }
    ++checked;
  }
  return checked;
}

}  // namespace

Result<BenchGedReport> bench_ged(const BenchGedOptions& o) try {
  GraphSet set;
  if (o.file.empty()) {
    set = random_graphs(o);
  } else {
    GraphSource source;
    source.path = o.file;
    source.format = o.files.format;
    source.direction = o.files.direction;
    set = load_graphs(source).or_throw();
    if (set.size() > o.graphs) {
      set.graphs.resize(o.graphs);
      set.ids.resize(o.graphs);
      if (!set.splits.empty()) set.splits.resize(o.graphs);
    }
  }
  if (set.size() < 2) return Error{ErrorCode::invalid_input, "there are fewer than two graphs to compare"};
  const ged::CostTable costs(o.costs, set.node_labels, set.edge_labels);
  const Exec ex({.threads = o.threads});
  const std::size_t checked = check(ex, set, costs, o.limits);

  double fastest = 0.0;
  ged::AllPairs pairs;
  const auto begin = Clock::now();
  do {
    const auto start = Clock::now();
    pairs = ged::all_pairs(ex, set, costs, {.limits = o.limits});
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    fastest = fastest == 0.0 ? seconds : std::min(fastest, seconds);
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < o.seconds);

  const auto count = static_cast<double>(pairs.upper.size());
  BenchGedReport r;
  r.pairs_per_s = count / fastest;
  r.exact_share = static_cast<double>(pairs.exact) / count;
  r.pairs = pairs.upper.size();
  r.graphs = set.size();
  r.threads = ex.threads();
  r.expanded_per_pair =
      static_cast<double>(std::accumulate(pairs.expanded.begin(), pairs.expanded.end(), std::uint64_t{0})) / count;
  r.most_expanded = *std::max_element(pairs.expanded.begin(), pairs.expanded.end());
  r.checked = checked;
  return r;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
