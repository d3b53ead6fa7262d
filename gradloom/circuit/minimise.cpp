#include "gradloom/circuit/minimise.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/circuit/network.h"
#include "gradloom/circuit/resubstitute.h"
#include "gradloom/circuit/window.h"

namespace gradloom::circuit {
namespace {

// Gates with a whole truth table each; above that the search for pairs takes minutes.
constexpr std::size_t kMaxWholeGates = 600;
constexpr std::uint32_t kWindowMoves = 8;
// A move costs about gates^2 times words of a table; walks get fewer moves where that is more than for 40 gates of 9
// inputs.
constexpr std::uint64_t kFullWalkCost = 40 * 40 * 8;

std::uint32_t affordable_moves(const Network& net, std::uint32_t moves) {
  const std::uint64_t words = net.inputs() > 6 ? std::uint64_t{1} << (net.inputs() - 6) : 1;
  const std::uint64_t cost = std::max<std::uint64_t>(net.gates() * net.gates() * words, kFullWalkCost);
  return static_cast<std::uint32_t>(moves * kFullWalkCost / cost);
}

// The same network on the inputs that it reads.
struct Compact {
  Network net{0};
  std::vector<std::uint32_t> input_of;  // input of `net` -> input of the original
};

Network moved(const Network& net, Network result, const std::vector<Literal>& inputs) {
  std::vector<Literal> to(net.size(), kFalse);
  for (std::uint32_t i = 0; i < net.inputs(); ++i) to[1 + i] = inputs[i];
  const auto at = [&](Literal l) { return to[node_of(l)] ^ (l & 1); };
  for (std::uint32_t n = net.first_gate(); n < net.size(); ++n)
    to[n] = net[n].kind == NetworkNode::Kind::parity ? result.parity(at(net[n].a), at(net[n].b))
                                                     : result.conjunction(at(net[n].a), at(net[n].b));
  for (const Literal o : net.outputs()) result.add_output(at(o));
  return result;
}

Compact compact(const Network& net) {
  std::vector<bool> read(net.first_gate(), false);
  const auto mark = [&](Literal l) {
    if (node_of(l) < net.first_gate()) read[node_of(l)] = true;
  };
  for (std::uint32_t n = net.first_gate(); n < net.size(); ++n) {
    mark(net[n].a);
    mark(net[n].b);
  }
  for (const Literal o : net.outputs()) mark(o);
  Compact c;
  std::vector<Literal> inputs(net.inputs(), kFalse);
  for (std::uint32_t i = 0; i < net.inputs(); ++i) {
    if (!read[1 + i]) continue;
    inputs[i] = literal(1 + static_cast<std::uint32_t>(c.input_of.size()));
    c.input_of.push_back(i);
  }
  c.net = moved(net, Network(static_cast<std::uint32_t>(c.input_of.size())), inputs);
  return c;
}

Network expanded(const Compact& c, const Network& net, std::uint32_t inputs) {
  Network result(inputs);
  std::vector<Literal> to;
  for (const std::uint32_t i : c.input_of) to.push_back(result.input(i));
  return moved(net, std::move(result), to);
}

// Every gate is the root of one window per round.
Network improve_windows(Network net, const WindowLimits& limits, const ResubstituteOptions& options) {
  for (std::uint32_t at = net.size(); at-- > net.first_gate();) {
    if (at >= net.size()) continue;
    const auto window = window_around(net, at, limits);
    if (!window) continue;
    const Network inside = resubstitute(window->inside, options);
    if (inside.gates() >= window->inside.gates()) continue;
    Network better = with_window(net, *window, inside);
    if (better.gates() < net.gates()) net = std::move(better);
  }
  return net;
}

}  // namespace

Minimised minimise(const Circuit& circuit, const MinimiseOptions& options) {
  validate(circuit).or_throw();
  Minimised result;
  const auto note = [&](std::string name, const Network& net) {
    result.circuit = net.to_circuit();
    result.steps.push_back({std::move(name), size_of(result.circuit)});
  };
  result.steps.push_back({"given", size_of(circuit)});
  Network net = Network::from(circuit);
  note("simplified", net);

  const Compact small = compact(net);
  const auto whole = [&] { return small.net.inputs() <= kMaxTableInputs && net.gates() <= kMaxWholeGates; };
  if (whole()) {
    Network found = resubstitute(compact(net).net, {.moves = 0, .seed = options.seed});
    note("resubstituted", expanded(small, found, circuit.inputs));
    const Network start = found;
    const std::uint32_t moves = affordable_moves(start, options.moves);
    for (std::uint32_t walk = 0; walk < options.walks; ++walk) {
      Network other = resubstitute(start, {.moves = moves, .seed = options.seed + walk});
      if (other.gates() < found.gates()) found = std::move(other);
    }
    note(fmt::format("{} random walks of {} moves", options.walks, moves), expanded(small, found, circuit.inputs));
    return result;
  }
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    const std::size_t before = net.gates();
    const WindowLimits limits{std::min(6 + 2 * round, 10u), std::min(24 + 8 * round, 40u)};
    net =
        improve_windows(std::move(net), limits, {.moves = round == 0 ? 0 : kWindowMoves, .seed = options.seed + round});
    note(fmt::format("windows of {} inputs", limits.leaves), net);
    if (round > 1 && net.gates() == before) break;
  }
  return result;
}

}  // namespace gradloom::circuit
