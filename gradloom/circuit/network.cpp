#include "gradloom/circuit/network.h"

#include <utility>

#include "gradloom/circuit/validate.h"

namespace gradloom::circuit {
namespace {

using Kind = NetworkNode::Kind;

std::vector<bool> live_nodes(const Network& net) {
  std::vector<bool> live(net.size(), false);
  for (const Literal o : net.outputs()) live[node_of(o)] = true;
  for (std::uint32_t n = net.size(); n-- > net.first_gate();)
    if (live[n]) live[node_of(net[n].a)] = live[node_of(net[n].b)] = true;
  return live;
}

// The op of op(a ^ flip_a, b ^ flip_b) ^ flip_result.
Op flipped(Op op, bool flip_a, bool flip_b, bool flip_result) {
  unsigned table = 0;
  for (const bool a : {false, true})
    for (const bool b : {false, true}) table = 2 * table + (apply(op, a != flip_a, b != flip_b) != flip_result ? 1 : 0);
  return static_cast<Op>(table);
}

}  // namespace

Network::Network(std::uint32_t inputs) : inputs_(inputs), nodes_(std::size_t{inputs} + 1) {}

Literal Network::intern(Kind kind, Literal a, Literal b) {
  auto& known = known_[kind == Kind::parity ? 1 : 0];
  const auto [at, fresh] = known.try_emplace(std::uint64_t{a} << 32 | b, size());
  if (fresh) nodes_.push_back({kind, a, b});
  return literal(at->second);
}

Literal Network::conjunction(Literal a, Literal b) {
  if (a > b) std::swap(a, b);
  if (a == kFalse || (a ^ b) == 1) return kFalse;
  if (a == kTrue || a == b) return b;
  // With one operand a conjunction that holds the other operand already.
  for (int side = 0; side < 2; ++side, std::swap(a, b)) {
    const NetworkNode& node = nodes_[node_of(a)];
    if (node.kind != Kind::conjunction) continue;
    for (const auto& [same, other] : {std::pair{node.a, node.b}, std::pair{node.b, node.a}}) {
      if (!inverted(a) && same == b) return a;
      if (!inverted(a) && same == (b ^ 1)) return kFalse;
      if (inverted(a) && same == b) return conjunction(b, other ^ 1);
      if (inverted(a) && same == (b ^ 1)) return b;
    }
  }
  if (a > b) std::swap(a, b);
  return intern(Kind::conjunction, a, b);
}

Literal Network::parity(Literal a, Literal b) {
  const Literal flip = (a ^ b) & 1;
  a &= ~1u;
  b &= ~1u;
  if (a > b) std::swap(a, b);
  if (a == kFalse) return b ^ flip;
  if (a == b) return kFalse ^ flip;
  for (int side = 0; side < 2; ++side, std::swap(a, b)) {
    const NetworkNode node = nodes_[node_of(a)];
    for (const auto& [same, other] : {std::pair{node.a, node.b}, std::pair{node.b, node.a}}) {
      if (node.kind == Kind::leaf || node_of(same) != node_of(b)) continue;
      if (node.kind == Kind::parity) return other ^ flip;
      // (b & x) ^ b = b & !x, and (!b & x) ^ b = b | x.
      if (!inverted(same)) return conjunction(b, other ^ 1) ^ flip;
      return conjunction(b ^ 1, other ^ 1) ^ 1 ^ flip;
    }
  }
  if (a > b) std::swap(a, b);
  return intern(Kind::parity, a, b) ^ flip;
}

Literal Network::gate(Op op, Literal a, Literal b) {
  switch (op) {
    case Op::always_false:
      return kFalse;
    case Op::a_and_b:
      return conjunction(a, b);
    case Op::a_and_not_b:
      return conjunction(a, b ^ 1);
    case Op::a:
      return a;
    case Op::not_a_and_b:
      return conjunction(a ^ 1, b);
    case Op::b:
      return b;
    case Op::a_xor_b:
      return parity(a, b);
    case Op::a_or_b:
      return conjunction(a ^ 1, b ^ 1) ^ 1;
    default:
      return gate(static_cast<Op>(15 - static_cast<unsigned>(op)), a, b) ^ 1;
  }
}

Network Network::from(const Circuit& circuit) {
  Network net(circuit.inputs);
  std::vector<Literal> of(circuit.signals());
  for (std::uint32_t i = 0; i < circuit.inputs; ++i) of[i] = net.input(i);
  for (std::size_t g = 0; g < circuit.gates.size(); ++g) {
    const Gate& gate = circuit.gates[g];
    // An operand that is ignored may be the gate itself.
    const Literal a = reads_a(gate.op) ? of[gate.a] : kFalse, b = reads_b(gate.op) ? of[gate.b] : kFalse;
    of[circuit.inputs + g] = net.gate(gate.op, a, b);
  }
  for (const std::uint32_t o : circuit.outputs) net.add_output(of[o]);
  return net.without_dead();
}

Network Network::without_dead() const {
  const std::vector<bool> live = live_nodes(*this);
  Network net(inputs_);
  std::vector<Literal> to(size(), kFalse);
  for (std::uint32_t n = 1; n < first_gate(); ++n) to[n] = literal(n);
  const auto moved = [&](Literal l) { return to[node_of(l)] ^ (l & 1); };
  for (std::uint32_t n = first_gate(); n < size(); ++n) {
    if (!live[n]) continue;
    const NetworkNode& node = nodes_[n];
    to[n] = node.kind == Kind::parity ? net.parity(moved(node.a), moved(node.b))
                                      : net.conjunction(moved(node.a), moved(node.b));
  }
  for (const Literal o : outputs_) net.add_output(moved(o));
  return net;
}

Circuit Network::to_circuit() const {
  const std::vector<bool> live = live_nodes(*this);
  // A node is stored in the polarity that the first output which reads it wants.
  std::vector<signed char> stored(size(), -1);
  for (const Literal o : outputs_)
    if (node_of(o) >= first_gate() && stored[node_of(o)] < 0) stored[node_of(o)] = inverted(o) ? 1 : 0;
  const auto flips = [&](Literal l) { return inverted(l) != (stored[node_of(l)] == 1); };

  Circuit c;
  c.inputs = inputs_;
  std::vector<std::uint32_t> signal(size(), 0);
  for (std::uint32_t i = 0; i < inputs_; ++i) signal[1 + i] = i;
  const auto add = [&](Gate gate) {
    c.gates.push_back(gate);
    return static_cast<std::uint32_t>(c.signals() - 1);
  };
  for (std::uint32_t n = first_gate(); n < size(); ++n) {
    if (!live[n]) continue;
    const NetworkNode& node = nodes_[n];
    const Op op = node.kind == Kind::parity ? Op::a_xor_b : Op::a_and_b;
    signal[n] = add(
        {flipped(op, flips(node.a), flips(node.b), stored[n] == 1), signal[node_of(node.a)], signal[node_of(node.b)]});
  }
  std::unordered_map<Literal, std::uint32_t> extra;
  for (const Literal o : outputs_) {
    const bool constant = node_of(o) == 0;
    if (!constant && !flips(o)) {
      c.outputs.push_back(signal[node_of(o)]);
      continue;
    }
    const auto [at, fresh] = extra.try_emplace(o, 0);
    if (fresh)
      at->second = constant ? add({o == kTrue ? Op::always_true : Op::always_false, 0, 0})
                            : add({Op::not_a, signal[node_of(o)], signal[node_of(o)]});
    c.outputs.push_back(at->second);
  }
  return c;
}

}  // namespace gradloom::circuit
