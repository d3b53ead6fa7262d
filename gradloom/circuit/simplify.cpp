#include "gradloom/circuit/simplify.h"

#include <fmt/format.h>

#include "gradloom/circuit/network.h"
#include "gradloom/circuit/validate.h"

namespace gradloom::circuit {
namespace {

// Which channels the output reads: bit c of the result.
std::vector<bool> channels_read(const Circuit& c, std::uint32_t channels, std::uint32_t output) {
  std::vector<bool> needed(c.signals(), false), channel(channels, false);
  needed[output] = true;
  for (std::size_t g = c.gates.size(); g-- > 0;) {
    if (!needed[c.inputs + g]) continue;
    if (reads_a(c.gates[g].op)) needed[c.gates[g].a] = true;
    if (reads_b(c.gates[g].op)) needed[c.gates[g].b] = true;
  }
  for (std::uint32_t i = 0; i < c.inputs; ++i)
    if (needed[i]) channel[i / 9] = true;
  return channel;
}

}  // namespace

Circuit simplify(const Circuit& circuit) {
  validate(circuit).or_throw();
  return Network::from(circuit).to_circuit();
}

SlicedRule slice(const CellRule& rule, std::span<const std::uint32_t> observed) {
  validate(rule).or_throw();
  if (observed.empty()) throw_invalid("slice: no channel is observed");
  const Circuit whole = Network::from(rule.circuit).to_circuit();

  std::vector<bool> kept(rule.channels, false);
  std::vector<std::uint32_t> waiting;
  const auto keep = [&](std::uint32_t c) {
    if (!kept[c]) waiting.push_back(c);
    kept[c] = true;
  };
  for (const std::uint32_t c : observed) {
    if (c >= rule.channels) throw_invalid(fmt::format("slice: channel {} is observed; there are {}", c, rule.channels));
    keep(c);
  }
  while (!waiting.empty()) {
    const std::uint32_t c = waiting.back();
    waiting.pop_back();
    const std::vector<bool> read = channels_read(whole, rule.channels, whole.outputs[c]);
    for (std::uint32_t r = 0; r < rule.channels; ++r)
      if (read[r]) keep(r);
  }

  SlicedRule sliced;
  sliced.rule.boundary = rule.boundary;
  sliced.rule.channels = 0;
  for (std::uint32_t c = 0; c < rule.channels; ++c)
    sliced.channel_of.push_back(kept[c] ? std::int64_t{sliced.rule.channels++} : -1);
  const Network net = Network::from(whole);
  Network smaller(9 * sliced.rule.channels);
  std::vector<Literal> to(net.size(), kFalse);
  for (std::uint32_t i = 0; i < rule.circuit.inputs; ++i)
    if (const std::int64_t c = sliced.channel_of[i / 9]; c >= 0)
      to[1 + i] = smaller.input(static_cast<std::uint32_t>(9 * c) + i % 9);
  const auto moved = [&](Literal l) { return to[node_of(l)] ^ (l & 1); };
  for (std::uint32_t n = net.first_gate(); n < net.size(); ++n)
    to[n] = net[n].kind == NetworkNode::Kind::parity ? smaller.parity(moved(net[n].a), moved(net[n].b))
                                                     : smaller.conjunction(moved(net[n].a), moved(net[n].b));
  for (std::uint32_t c = 0; c < rule.channels; ++c)
    if (kept[c]) smaller.add_output(moved(net.outputs()[c]));
  sliced.rule.circuit = smaller.to_circuit();
  return sliced;
}

}  // namespace gradloom::circuit
