#include "gradloom/data/graph_order.h"

#include <algorithm>
#include <numeric>

namespace gradloom {
namespace {

// A breadth-first walk through components, which marks what it has seen.
class Walk {
 public:
  explicit Walk(const Graph& g) : g_(g), seen_(g.nodes(), 0), degree_(g.nodes()) {
    for (std::uint32_t v = 0; v < g.nodes(); ++v)
      degree_[v] = g.in_ptr()[v + 1] - g.in_ptr()[v] + g.out_ptr()[v + 1] - g.out_ptr()[v];
  }

  bool seen(std::uint32_t v) const { return seen_[v] != 0; }
  std::uint32_t degree(std::uint32_t v) const { return degree_[v]; }

  // Appends the component of `start` to `order`, in which it takes the places from `first` on. Returns where the last
  // level begins.
  std::size_t visit(std::uint32_t start, std::vector<std::uint32_t>& order) {
    const std::size_t first = order.size();
    std::size_t level = first, level_end = first + 1;
    add(start, order);
    for (std::size_t at = first; at < order.size(); ++at) {
      if (at == level_end) level = at, level_end = order.size();
      const std::uint32_t v = order[at];
      const std::size_t before = order.size();
      for (std::uint32_t e = g_.in_ptr()[v]; e < g_.in_ptr()[v + 1]; ++e) add(g_.in_source()[e], order);
      if (g_.direction() == Direction::directed)
        for (std::uint32_t e = g_.out_ptr()[v]; e < g_.out_ptr()[v + 1]; ++e) add(g_.out_target()[e], order);
      std::sort(
          order.begin() + static_cast<std::ptrdiff_t>(before), order.end(),
          [&](std::uint32_t a, std::uint32_t b) { return degree_[a] != degree_[b] ? degree_[a] < degree_[b] : a < b; });
    }
    return level;
  }

  // Takes back what visit() appended from `first` on.
  void forget(std::size_t first, std::vector<std::uint32_t>& order) {
    for (std::size_t at = first; at < order.size(); ++at) seen_[order[at]] = 0;
    order.resize(first);
  }

 private:
  void add(std::uint32_t v, std::vector<std::uint32_t>& order) {
    if (seen_[v]) return;
    seen_[v] = 1;
    order.push_back(v);
  }

  const Graph& g_;
  std::vector<std::uint8_t> seen_;
  std::vector<std::uint32_t> degree_;
};

}  // namespace

std::vector<std::uint32_t> locality_order(const Graph& graph) {
  Walk walk(graph);
  std::vector<std::uint32_t> starts(graph.nodes()), order;
  std::iota(starts.begin(), starts.end(), 0u);
  std::stable_sort(starts.begin(), starts.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return walk.degree(a) < walk.degree(b); });
  order.reserve(graph.nodes());
  for (const std::uint32_t start : starts) {
    if (walk.seen(start)) continue;
    // The first of the last level is far from the start; the order begins there.
    const std::size_t first = order.size(), last_level = walk.visit(start, order);
    const std::uint32_t far = order[last_level];
    walk.forget(first, order);
    walk.visit(far, order);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace gradloom
