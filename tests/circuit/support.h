// What the tests of circuits share: random circuits, equality by simulation, the published circuits.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gradloom/base/random.h"
#include "gradloom/circuit/circuit.h"
#include "gradloom/circuit/simulate.h"
#include "tests/circuit/gate_list.h"

namespace gradloom::test {

// Any of the 16 ops, mostly those of two operands; operands mostly near the gate.
inline circuit::Circuit random_circuit(std::uint64_t seed, std::uint32_t inputs, std::uint32_t gates,
                                       std::uint32_t outputs) {
  const RandomStream random(seed, RandomUse::user);
  std::uint32_t at = 0;
  circuit::Circuit c;
  c.inputs = inputs;
  for (std::uint32_t g = 0; g < gates; ++g) {
    const std::uint32_t below = inputs + g, window = std::min(below, std::max(inputs, 24u));
    const auto operand = [&] {
      return random.below(at++, 2) == 0 ? below - 1 - random.below(at++, window) : random.below(at++, below);
    };
    constexpr unsigned kOfTwo[] = {1, 2, 4, 6, 7, 8, 9, 11, 13, 14};
    const bool any = random.below(at++, 6) == 0;
    const auto op = static_cast<circuit::Op>(any ? random.below(at++, 16) : kOfTwo[random.below(at++, 10)]);
    const std::uint32_t a = operand(), b = operand();
    c.gates.push_back({op, a, b});
  }
  for (std::uint32_t o = 0; o < outputs; ++o) {
    const std::uint32_t signals = inputs + gates;
    c.outputs.push_back(signals - 1 - random.below(at++, std::min(signals, 3 * outputs)));
  }
  return c;
}

inline circuit::CellRule random_rule(std::uint64_t seed, std::uint32_t channels, std::uint32_t gates) {
  return {channels, circuit::Boundary::periodic, random_circuit(seed, 9 * channels, gates, channels)};
}

// Whether both have the same outputs: on every assignment up to 14 inputs, on 2^14 random ones above.
inline testing::AssertionResult same_function(const circuit::Circuit& a, const circuit::Circuit& b) {
  if (a.inputs != b.inputs || a.outputs.size() != b.outputs.size())
    return testing::AssertionFailure() << "different inputs or outputs";
  const bool all = a.inputs <= 14;
  const std::uint64_t blocks = all && a.inputs > 6 ? std::uint64_t{1} << (a.inputs - 6) : all ? 1 : 256;
  std::vector<std::uint64_t> in(a.inputs);
  for (std::uint64_t block = 0; block < blocks; ++block) {
    const RandomStream random(77, RandomUse::user, 0, static_cast<std::uint32_t>(block));
    for (std::uint32_t i = 0; i < a.inputs; ++i) in[i] = all ? circuit::variable_word(i, block) : random.bits(i);
    const auto x = circuit::outputs_for(a, in), y = circuit::outputs_for(b, in);
    for (std::size_t o = 0; o < x.size(); ++o)
      if (x[o] != y[o]) return testing::AssertionFailure() << "output " << o << " differs in block " << block;
  }
  return testing::AssertionSuccess();
}

// Conway's rule by counting.
inline bool life_of(unsigned patch) {
  const int alive = __builtin_popcount(patch & ~16u & 511u);
  return alive == 3 || (alive == 2 && (patch >> 4 & 1));
}

inline std::filesystem::path data_root() {
  const char* root = std::getenv("GRADLOOM_DATA");
  return root && *root ? root : "";
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The circuits that were published for the game of life (periodic) and the checkerboard (zero boundary).
inline circuit::CellRule published_life() {
  return circuit::read_gate_list(text_of(data_root() / "logic/gol_circuit.gatelist.txt"), 1,
                                 circuit::Boundary::periodic)
      .or_throw();
}
inline circuit::CellRule published_checkerboard() {
  return circuit::read_gate_list(text_of(data_root() / "logic/checkerboard.gatelist.txt"), 8, circuit::Boundary::zero)
      .or_throw();
}

}  // namespace gradloom::test

#define GRADLOOM_NEEDS_DATA() \
  if (gradloom::test::data_root().empty()) GTEST_SKIP() << "GRADLOOM_DATA is not set"
