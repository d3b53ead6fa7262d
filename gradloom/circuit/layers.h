// Where the signals of a circuit go in a drawing: in layers from left to right, wires around gates.
#pragma once

#include <cstdint>
#include <vector>

#include "gradloom/circuit/circuit.h"

namespace gradloom::circuit {

struct DrawnPoint {
  enum class Kind : std::uint8_t { input, gate, output, bend } kind = Kind::bend;
  std::uint32_t index = 0;  // input, gate or output; of a bend the signal
  std::uint32_t layer = 0;
  double y = 0;
  std::vector<std::uint32_t> before, after;  // neighbours in the layers beside
};

struct Drawing {
  std::vector<DrawnPoint> points;
  std::uint32_t layers = 0;
  double height = 0;
  // The wire of each signal, by layer: the signal's own point, then one bend per layer up to the layer before its last
  // reader. Empty where the signal has no point.
  std::vector<std::vector<std::uint32_t>> wire;
  std::vector<std::uint32_t> gate_point, output_point;
};

// Inputs that nobody reads have no point. Precondition: validate(circuit) succeeds.
Drawing lay_out(const Circuit& circuit);

}  // namespace gradloom::circuit
