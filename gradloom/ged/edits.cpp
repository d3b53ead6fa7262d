#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "gradloom/ged/ged.h"

namespace gradloom::ged {
namespace {

std::uint32_t node_label(const Graph& g, std::uint32_t node) {
  return g.node_labels().empty() ? kUnlabelled : g.node_labels()[node];
}
std::uint32_t edge_label(const Graph& g, std::uint32_t edge) {
  return g.edge_labels().empty() ? kUnlabelled : g.edge_labels()[edge];
}

struct Step {
  EditOperation operation;
  Cost cost;
};

void check(const Graph& first, const Graph& second, const Mapping& mapping) {
  if (mapping.size() != first.nodes())
    throw Exception(
        ErrorCode::invalid_input,
        fmt::format("the mapping has {} entries, but the first graph has {} nodes", mapping.size(), first.nodes()));
  std::vector<bool> used(second.nodes());
  for (std::uint32_t to : mapping) {
    if (to == kErased) continue;
    if (to >= second.nodes() || used[to])
      throw_invalid(fmt::format("the mapping names node {} of the second graph {}", to,
                                to < second.nodes() ? "twice" : "which does not exist"));
    used[to] = true;
  }
}

// All edits of a mapping, free ones too, straight from the definition.
std::vector<Step> steps_of(const Graph& first, const Graph& second, const CostTable& c, const Mapping& mapping) {
  check(first, second, mapping);
  std::vector<Step> steps;
  std::vector<bool> reached(second.nodes());
  for (std::uint32_t i = 0; i < first.nodes(); ++i) {
    const std::uint32_t a = node_label(first, i), to = mapping[i];
    if (to == kErased) {
      steps.push_back({{Edit::node_delete, {i}, {}}, c.node_delete(a)});
    } else {
      steps.push_back({{Edit::node_substitute, {i}, {to}}, c.node_sub(a, node_label(second, to))});
      reached[to] = true;
    }
  }
  for (std::uint32_t j = 0; j < second.nodes(); ++j)
    if (!reached[j]) steps.push_back({{Edit::node_insert, {}, {j}}, c.node_insert(node_label(second, j))});

  const bool directed = second.direction() == Direction::directed;
  const auto key = [&](std::uint32_t a, std::uint32_t b) {
    return directed ? std::pair(a, b) : std::pair(std::min(a, b), std::max(a, b));
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> targets;
  for (std::uint32_t e = 0; e < second.edges(); ++e) targets[key(second.edge_from()[e], second.edge_to()[e])] = e;
  std::vector<bool> met(second.edges());
  for (std::uint32_t e = 0; e < first.edges(); ++e) {
    const std::uint32_t from = first.edge_from()[e], to = first.edge_to()[e], a = edge_label(first, e);
    const std::uint32_t x = mapping[from], y = mapping[to];
    const auto it = x == kErased || y == kErased ? targets.end() : targets.find(key(x, y));
    if (it != targets.end() && !c.edge_splits(a, edge_label(second, it->second))) {
      met[it->second] = true;
      steps.push_back({{Edit::edge_substitute, {from, to}, {x, y}}, c.edge_sub(a, edge_label(second, it->second))});
    } else {
      steps.push_back({{Edit::edge_delete, {from, to}, {}}, c.edge_delete(a)});
    }
  }
  for (std::uint32_t e = 0; e < second.edges(); ++e)
    if (!met[e])
      steps.push_back({{Edit::edge_insert, {}, {second.edge_from()[e], second.edge_to()[e]}},
                       c.edge_insert(edge_label(second, e))});
  for (Step& step : steps) step.operation.cost = c.value(step.cost);
  return steps;
}

// At least this much for turning `a` things into `b`, `common` of which need not change.
struct Cheapest {
  Cost sub, erase, insert;
  Cost operator()(std::size_t a, std::size_t b, std::size_t common) const {
    const std::size_t both = std::min(a, b);
    return static_cast<Cost>(both - common) * std::min(sub, erase + insert) + static_cast<Cost>(a - both) * erase +
           static_cast<Cost>(b - both) * insert;
  }
};

using Counts = std::map<std::uint32_t, std::size_t>;

std::size_t common_of(const Counts& a, const Counts& b) {
  std::size_t common = 0;
  for (const auto& [label, count] : a)
    if (const auto it = b.find(label); it != b.end()) common += std::min(count, it->second);
  return common;
}

template <class Sub, class Erase, class Insert>
Cheapest cheapest_of(const Counts& a, const Counts& b, Sub&& sub, Erase&& erase, Insert&& insert) {
  Cheapest least{kForbidden, kForbidden, kForbidden};
  for (const auto& [x, _] : a) {
    least.erase = std::min(least.erase, erase(x));
    for (const auto& [y, __] : b)
      if (x != y) least.sub = std::min(least.sub, sub(x, y));
  }
  for (const auto& [y, _] : b) least.insert = std::min(least.insert, insert(y));
  return least;
}

}  // namespace

const char* edit_name(Edit edit) {
  switch (edit) {
    case Edit::node_substitute:
      return "node_substitute";
    case Edit::node_delete:
      return "node_delete";
    case Edit::node_insert:
      return "node_insert";
    case Edit::edge_substitute:
      return "edge_substitute";
    case Edit::edge_delete:
      return "edge_delete";
    case Edit::edge_insert:
      return "edge_insert";
  }
  return "";
}

double mapping_cost(const Graph& first, const Graph& second, const CostTable& costs, const Mapping& mapping) {
  Cost total = 0;
  for (const Step& step : steps_of(first, second, costs, mapping)) total += step.cost;
  return costs.value(total);
}

std::vector<EditOperation> edit_path(const Graph& first, const Graph& second, const CostTable& costs,
                                     const Mapping& mapping) {
  std::vector<EditOperation> path;
  for (Step& step : steps_of(first, second, costs, mapping))
    if (step.cost > 0 || step.operation.edit != Edit::edge_substitute) path.push_back(std::move(step.operation));
  return path;
}

double label_bound(const Graph& first, const Graph& second, const CostTable& c) {
  Counts nodes1, nodes2, edges1, edges2;
  const auto count = [&](const Graph& g, Counts& nodes, Counts& edges, std::vector<std::uint32_t>& degrees) {
    degrees.assign(std::max(first.nodes(), second.nodes()), 0);
    for (std::uint32_t i = 0; i < g.nodes(); ++i) ++nodes[c.labels_matter() ? node_label(g, i) : kUnlabelled];
    for (std::uint32_t e = 0; e < g.edges(); ++e) {
      if (g.edge_from()[e] == g.edge_to()[e]) continue;
      ++edges[c.labels_matter() ? edge_label(g, e) : kUnlabelled];
      ++degrees[g.edge_from()[e]];
      ++degrees[g.edge_to()[e]];
    }
    std::sort(degrees.begin(), degrees.end());
  };
  std::vector<std::uint32_t> degrees1, degrees2;
  count(first, nodes1, edges1, degrees1);
  count(second, nodes2, edges2, degrees2);
  const auto total = [](const Counts& counts) {
    std::size_t sum = 0;
    for (const auto& [_, n] : counts) sum += n;
    return sum;
  };
  const Cheapest node = cheapest_of(
      nodes1, nodes2, [&](auto a, auto b) { return c.node_sub(a, b); }, [&](auto a) { return c.node_delete(a); },
      [&](auto b) { return c.node_insert(b); });
  const Cheapest edge = cheapest_of(
      edges1, edges2, [&](auto a, auto b) { return c.edge_sub(a, b); }, [&](auto a) { return c.edge_delete(a); },
      [&](auto b) { return c.edge_insert(b); });
  // An inserted or deleted edge changes two degrees by one.
  std::size_t change = 0;
  for (std::size_t i = 0; i < degrees1.size(); ++i)
    change += degrees1[i] > degrees2[i] ? degrees1[i] - degrees2[i] : degrees2[i] - degrees1[i];
  const Cost by_degree = change == 0 ? 0 : static_cast<Cost>((change + 1) / 2) * std::min(edge.erase, edge.insert);
  const Cost by_label = edge(total(edges1), total(edges2), common_of(edges1, edges2));
  return c.value(node(total(nodes1), total(nodes2), common_of(nodes1, nodes2)) + std::max(by_label, by_degree));
}

}  // namespace gradloom::ged
