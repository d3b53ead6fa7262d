#include "gradloom/circuit/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace gradloom::circuit {
namespace {

Error wrong(std::string message) { return {ErrorCode::invalid_input, "circuit: " + std::move(message)}; }

bool is_constant(Op op) { return op == Op::always_false || op == Op::always_true; }

}  // namespace

Result<void> validate(const Circuit& c) {
  if (c.inputs > kMaxInputs)
    return wrong(fmt::format("there are {} inputs; at most {} are allowed", c.inputs, kMaxInputs));
  if (c.gates.size() > kMaxGates)
    return wrong(fmt::format("there are {} gates; at most {} are allowed", c.gates.size(), kMaxGates));
  if (c.outputs.size() > kMaxOutputs)
    return wrong(fmt::format("there are {} outputs; at most {} are allowed", c.outputs.size(), kMaxOutputs));
  for (std::size_t g = 0; g < c.gates.size(); ++g) {
    const Gate& gate = c.gates[g];
    const std::size_t own = c.inputs + g;
    if (static_cast<unsigned>(gate.op) > 15)
      return wrong(fmt::format("gate {} has op {}; it must be 0 to 15", g, static_cast<unsigned>(gate.op)));
    const bool itself = c.inputs == 0 && is_constant(gate.op) && gate.a == 0 && gate.b == 0;
    for (const std::uint32_t operand : {gate.a, gate.b}) {
      if (operand < own || itself) continue;
      if (operand >= c.signals())
        return wrong(
            fmt::format("gate {} reads signal {}, which does not exist; there are {}", g, operand, c.signals()));
      return wrong(fmt::format("gate {} (signal {}) reads signal {}; gates read only signals before their own", g, own,
                               operand));
    }
  }
  for (std::size_t o = 0; o < c.outputs.size(); ++o)
    if (c.outputs[o] >= c.signals())
      return wrong(
          fmt::format("output {} is signal {}, which does not exist; there are {}", o, c.outputs[o], c.signals()));
  return {};
}

Result<void> validate(const CellRule& rule) {
  if (rule.channels == 0) return wrong("a cell rule needs at least one channel");
  if (rule.circuit.inputs != std::uint64_t{9} * rule.channels)
    return wrong(fmt::format("a cell rule of {} channels needs {} inputs (9 cells each); it has {}", rule.channels,
                             std::uint64_t{9} * rule.channels, rule.circuit.inputs));
  if (rule.circuit.outputs.size() != rule.channels)
    return wrong(fmt::format("a cell rule of {} channels needs as many outputs; it has {}", rule.channels,
                             rule.circuit.outputs.size()));
  return validate(rule.circuit);
}

CircuitSize size_of(const Circuit& c) {
  CircuitSize size;
  size.gates = c.gates.size();
  std::vector<std::size_t> depth(c.signals(), 0);
  for (std::size_t g = 0; g < c.gates.size(); ++g) {
    const Gate& gate = c.gates[g];
    const bool a = reads_a(gate.op), b = reads_b(gate.op);
    if (gate.op != Op::a && gate.op != Op::b) ++size.active;
    const std::size_t below = std::max(a ? depth[gate.a] : 0, b ? depth[gate.b] : 0);
    depth[c.inputs + g] = gate.op == Op::a || gate.op == Op::b || is_constant(gate.op) ? below : below + 1;
  }
  std::vector<bool> needed(c.signals(), false);
  for (const std::uint32_t o : c.outputs) {
    needed[o] = true;
    size.depth = std::max(size.depth, depth[o]);
  }
  for (std::size_t g = c.gates.size(); g-- > 0;) {
    if (!needed[c.inputs + g]) continue;
    if (reads_a(c.gates[g].op)) needed[c.gates[g].a] = true;
    if (reads_b(c.gates[g].op)) needed[c.gates[g].b] = true;
  }
  size.used_inputs = static_cast<std::size_t>(std::count(needed.begin(), needed.begin() + c.inputs, true));
  return size;
}

}  // namespace gradloom::circuit
