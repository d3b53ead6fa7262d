#include "gradloom/circuit/window.h"

#include <algorithm>

namespace gradloom::circuit {
namespace {

using Kind = NetworkNode::Kind;

constexpr Literal kUnknown = UINT32_MAX;

Literal made(Network& net, Kind kind, Literal a, Literal b) {
  return kind == Kind::parity ? net.parity(a, b) : net.conjunction(a, b);
}

// What is inside the window and what it reads, by node.
struct Marks {
  std::vector<bool> inside, leaf;
};

std::vector<std::uint32_t> grow(const Network& net, std::uint32_t root, const WindowLimits& limits, Marks& marks) {
  std::vector<std::uint32_t> leaves;
  const auto open = [&](std::uint32_t n) {  // n becomes inside, its operands leaves
    marks.inside[n] = true;
    for (const Literal l : {net[n].a, net[n].b}) {
      const std::uint32_t m = node_of(l);
      if (marks.inside[m] || marks.leaf[m]) continue;
      marks.leaf[m] = true;
      leaves.push_back(m);
    }
  };
  open(root);
  for (std::uint32_t gates = 1; gates < limits.gates; ++gates) {
    // The leaf whose opening adds the fewest; among those the last, which keeps the window in one piece.
    std::size_t best = leaves.size();
    std::uint32_t best_added = 3;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const std::uint32_t m = leaves[i];
      if (m < net.first_gate()) continue;
      std::uint32_t added = 0;
      for (const Literal l : {net[m].a, net[m].b}) added += !marks.inside[node_of(l)] && !marks.leaf[node_of(l)];
      if (added < best_added || (added == best_added && best < leaves.size() && m > leaves[best])) {
        best = i;
        best_added = added;
      }
    }
    if (best == leaves.size() || leaves.size() - 1 + best_added > limits.leaves) break;
    const std::uint32_t m = leaves[best];
    leaves.erase(leaves.begin() + static_cast<std::ptrdiff_t>(best));
    marks.leaf[m] = false;
    open(m);
  }
  return leaves;
}

// Whether a leaf depends on a gate of the window.
bool comes_back(const Network& net, const Marks& marks) {
  std::vector<bool> above(net.size(), false);
  for (std::uint32_t n = net.first_gate(); n < net.size(); ++n) {
    above[n] = marks.inside[n] || above[node_of(net[n].a)] || above[node_of(net[n].b)];
    if (marks.leaf[n] && above[n]) return true;
  }
  return false;
}

}  // namespace

std::optional<Window> window_around(const Network& net, std::uint32_t root, const WindowLimits& limits) {
  Marks marks{std::vector<bool>(net.size(), false), std::vector<bool>(net.size(), false)};
  Window window;
  window.leaves = grow(net, root, limits, marks);
  auto gates = static_cast<std::uint32_t>(std::count(marks.inside.begin(), marks.inside.end(), true));
  for (std::uint32_t n = net.first_gate(); n < net.size() && gates < limits.gates; ++n) {
    if (marks.inside[n] || marks.leaf[n]) continue;
    const std::uint32_t a = node_of(net[n].a), b = node_of(net[n].b);
    if (!(marks.inside[a] || marks.leaf[a]) || !(marks.inside[b] || marks.leaf[b])) continue;
    marks.inside[n] = true;
    ++gates;
  }
  if (gates < 2 || comes_back(net, marks)) return std::nullopt;

  std::vector<bool> read_outside(net.size(), false);
  for (std::uint32_t n = net.first_gate(); n < net.size(); ++n)
    if (!marks.inside[n]) read_outside[node_of(net[n].a)] = read_outside[node_of(net[n].b)] = true;
  for (const Literal o : net.outputs()) read_outside[node_of(o)] = true;
  std::sort(window.leaves.begin(), window.leaves.end());
  window.inside = Network(static_cast<std::uint32_t>(window.leaves.size()));
  std::vector<Literal> to(net.size(), kUnknown);
  for (std::uint32_t i = 0; i < window.leaves.size(); ++i) to[window.leaves[i]] = window.inside.input(i);
  const auto moved = [&](Literal l) { return to[node_of(l)] ^ (l & 1); };
  for (std::uint32_t n = net.first_gate(); n < net.size(); ++n) {
    if (!marks.inside[n]) continue;
    to[n] = made(window.inside, net[n].kind, moved(net[n].a), moved(net[n].b));
    if (!read_outside[n]) continue;
    window.drivers.push_back(n);
    window.inside.add_output(to[n]);
  }
  return window;
}

Network with_window(const Network& net, const Window& window, const Network& inside) {
  Network result(net.inputs());
  std::vector<Literal> to(net.size(), kUnknown), inner(inside.size(), kUnknown);
  std::vector<std::uint32_t> driver(net.size(), UINT32_MAX);
  for (std::uint32_t d = 0; d < window.drivers.size(); ++d) driver[window.drivers[d]] = d;
  for (std::uint32_t i = 0; i < net.first_gate(); ++i) to[i] = literal(i);
  inner[0] = kFalse;

  // Depth first; nodes of the inside stand behind those of the network.
  const std::uint32_t base = net.size();
  const auto known = [&](std::uint32_t n) -> Literal& { return n < base ? to[n] : inner[n - base]; };
  std::vector<std::uint32_t> stack, reads;
  const auto build = [&](std::uint32_t root) {
    stack.push_back(root);
    while (!stack.empty()) {
      const std::uint32_t n = stack.back();
      if (known(n) != kUnknown) {
        stack.pop_back();
        continue;
      }
      const bool within = n >= base, drives = !within && driver[n] != UINT32_MAX;
      const std::uint32_t local = n - base;
      reads.clear();
      if (drives)
        reads = {base + node_of(inside.outputs()[driver[n]])};
      else if (within && local < inside.first_gate())
        reads = {window.leaves[local - 1]};
      else if (within)
        reads = {base + node_of(inside[local].a), base + node_of(inside[local].b)};
      else
        reads = {node_of(net[n].a), node_of(net[n].b)};
      bool ready = true;
      for (const std::uint32_t r : reads)
        if (known(r) == kUnknown) {
          stack.push_back(r);
          ready = false;
        }
      if (!ready) continue;
      stack.pop_back();
      if (drives) {
        to[n] = known(reads[0]) ^ (inside.outputs()[driver[n]] & 1);
      } else if (reads.size() == 1) {
        inner[local] = known(reads[0]);
      } else {
        const NetworkNode& node = within ? inside[local] : net[n];
        known(n) = made(result, node.kind, known(reads[0]) ^ (node.a & 1), known(reads[1]) ^ (node.b & 1));
      }
    }
  };
  for (const Literal o : net.outputs()) {
    build(node_of(o));
    result.add_output(to[node_of(o)] ^ (o & 1));
  }
  return result.without_dead();
}

}  // namespace gradloom::circuit
