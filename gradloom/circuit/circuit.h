// Circuit: a hard circuit of two-input gates, and CellRule: a circuit that updates every cell of a grid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gradloom/base/choice.h"

namespace gradloom::circuit {

// The sixteen functions of two bits. The value is the truth table: bit 3 is f(0,0), bit 2 f(0,1), bit 1 f(1,0) and
// bit 0 f(1,1).
enum class Op : std::uint8_t {
  always_false,
  a_and_b,
  a_and_not_b,
  a,
  not_a_and_b,
  b,
  a_xor_b,
  a_or_b,
  nor,
  xnor,
  not_b,
  a_or_not_b,
  not_a,
  not_a_or_b,
  nand,
  always_true,
};

constexpr bool apply(Op op, bool a, bool b) {
  return (static_cast<unsigned>(op) >> (3u - (2u * unsigned{a} + unsigned{b}))) & 1u;
}

// Reads two signals. Signals are numbered: first the inputs, then the gates in order.
struct Gate {
  Op op = Op::always_false;
  std::uint32_t a = 0, b = 0;
  friend bool operator==(const Gate&, const Gate&) = default;
};

// An input of a classifier: whether a column of its table is above a threshold.
struct InputMeaning {
  std::string column;
  double threshold = 0.0;
  friend bool operator==(const InputMeaning&, const InputMeaning&) = default;
};

// The meaning of inputs and outputs. Either list is empty when it is unknown, else it has one entry for each.
struct Meaning {
  std::vector<InputMeaning> inputs;
  std::vector<std::string> outputs;  // the class that the output votes for; the class with most votes wins, the first
                                     // of equals
  bool empty() const { return inputs.empty() && outputs.empty(); }
  friend bool operator==(const Meaning&, const Meaning&) = default;
};

// In topological order: a gate reads only signals with a number below its own. Operands that an op ignores still name a
// signal that exists; a circuit without inputs may have constant gates that read signal 0 (themselves) only.
struct Circuit {
  std::uint32_t inputs = 0;
  std::vector<Gate> gates;
  std::vector<std::uint32_t> outputs;  // signals
  Meaning meaning = {};                // what rebuilds a circuit (simplify, minimise) leaves it out

  std::size_t signals() const { return inputs + gates.size(); }
};

enum class Boundary { periodic, zero };
inline constexpr Choice<Boundary> kBoundaries[] = {
    {Boundary::periodic, "periodic", "the opposite edge: a torus"},
    {Boundary::zero, "zero", "cells that are 0"},
};

// One synchronous step of a cell: reads its 3x3 patch, row-major (4 is the centre), of C channels; input number
// channel * 9 + position. Output c is channel c of the cell's next state.
struct CellRule {
  std::uint32_t channels = 1;  // C
  Boundary boundary = Boundary::periodic;
  Circuit circuit;  // 9 C inputs, C outputs
};

}  // namespace gradloom::circuit
