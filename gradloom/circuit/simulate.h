// Evaluates a circuit on 64 assignments of its inputs at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gradloom/circuit/circuit.h"

namespace gradloom::circuit {

// op on every bit.
constexpr std::uint64_t apply_bits(Op op, std::uint64_t a, std::uint64_t b) {
  const auto table = static_cast<unsigned>(op);
  std::uint64_t y = 0;
  if (table & 8) y |= ~a & ~b;
  if (table & 4) y |= ~a & b;
  if (table & 2) y |= a & ~b;
  if (table & 1) y |= a & b;
  return y;
}

// Bit k of every word belongs to assignment k. signals[0 .. inputs) are given, the others are written.
// Precondition: validate(circuit) succeeds, signals.size() == circuit.signals().
inline void simulate(const Circuit& circuit, std::span<std::uint64_t> signals) {
  for (std::size_t g = 0; g < circuit.gates.size(); ++g) {
    const Gate& gate = circuit.gates[g];
    signals[circuit.inputs + g] = apply_bits(gate.op, signals[gate.a], signals[gate.b]);
  }
}

// The outputs for these inputs.
inline std::vector<std::uint64_t> outputs_for(const Circuit& circuit, std::span<const std::uint64_t> inputs) {
  std::vector<std::uint64_t> signals(circuit.signals()), outputs;
  for (std::size_t i = 0; i < circuit.inputs; ++i) signals[i] = inputs[i];
  simulate(circuit, signals);
  for (const std::uint32_t o : circuit.outputs) outputs.push_back(signals[o]);
  return outputs;
}

// Word `block` of the truth table of variable i: assignment 64 * block + k gives variable i bit i of its number.
constexpr std::uint64_t variable_word(unsigned i, std::uint64_t block) {
  constexpr std::uint64_t kLow[6] = {0xAAAAAAAAAAAAAAAAu, 0xCCCCCCCCCCCCCCCCu, 0xF0F0F0F0F0F0F0F0u,
                                     0xFF00FF00FF00FF00u, 0xFFFF0000FFFF0000u, 0xFFFFFFFF00000000u};
  if (i < 6) return kLow[i];
  return (block >> (i - 6)) & 1 ? ~std::uint64_t{0} : 0;
}

}  // namespace gradloom::circuit
