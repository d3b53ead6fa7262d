// Minimisation keeps the function and finds what is there to find.
#include "gradloom/circuit/minimise.h"

#include <gtest/gtest.h>

#include "gradloom/circuit/network.h"
#include "gradloom/circuit/window.h"
#include "tests/circuit/support.h"

namespace gradloom::test {
namespace {

using circuit::Circuit;
using circuit::Minimised;
using circuit::Op;

TEST(Minimise, KeepsTheFunctionOfRandomCircuits) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Circuit c = random_circuit(seed, 1 + seed % 10, 5 + 2 * seed, 1 + seed % 4);
    const Minimised m = circuit::minimise(c, {.moves = 60, .walks = 2, .seed = seed});
    ASSERT_TRUE(circuit::validate(m.circuit).ok());
    ASSERT_TRUE(same_function(c, m.circuit)) << "seed " << seed;
    for (std::size_t s = 1; s < m.steps.size(); ++s)
      EXPECT_LE(m.steps[s].size.gates, m.steps[s - 1].size.gates + c.outputs.size()) << m.steps[s].name;
  }
}

TEST(Minimise, KeepsTheFunctionOfCircuitsWithManyInputs) {
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    const Circuit c = random_circuit(seed, 14, 150 + 10 * seed, 8);
    const Minimised m = circuit::minimise(c, {.seed = seed});
    ASSERT_TRUE(same_function(c, m.circuit)) << "seed " << seed;
  }
}

TEST(Minimise, FindsTheGateBehindManyGates) {
  // a xor b, written with four NANDs; and its use where only one polarity can be seen.
  const Circuit nands{2, {{Op::nand, 0, 1}, {Op::nand, 0, 2}, {Op::nand, 1, 2}, {Op::nand, 3, 4}}, {5}};
  EXPECT_EQ(circuit::minimise(nands).circuit.gates, (std::vector<circuit::Gate>{{Op::a_xor_b, 0, 1}}));
  // (a | b) & (a & b) is a & b.
  const Circuit absorbed{2, {{Op::a_or_b, 0, 1}, {Op::a_and_b, 0, 1}, {Op::a_and_b, 2, 3}}, {4}};
  EXPECT_EQ(circuit::minimise(absorbed).circuit.gates.size(), 1u);
  // A full adder needs five gates; here the majority comes as a sum of products.
  const Circuit adder{3,
                      {{Op::a_xor_b, 0, 1},
                       {Op::a_xor_b, 3, 2},
                       {Op::a_and_b, 0, 1},
                       {Op::a_and_b, 0, 2},
                       {Op::a_and_b, 1, 2},
                       {Op::a_or_b, 5, 6},
                       {Op::a_or_b, 8, 7}},
                      {4, 9}};
  EXPECT_EQ(circuit::minimise(adder).circuit.gates.size(), 5u);
}

TEST(Minimise, GivesTheSameCircuitAgain) {
  const Circuit c = random_circuit(4, 9, 120, 2);
  EXPECT_EQ(circuit::minimise(c, {.moves = 50}).circuit.gates, circuit::minimise(c, {.moves = 50}).circuit.gates);
}

TEST(Minimise, WindowsKeepTheFunction) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const circuit::Network net = circuit::Network::from(random_circuit(seed, 12, 100, 4));
    for (std::uint32_t root = net.first_gate(); root < net.size(); root += 3) {
      const auto window = circuit::window_around(net, root, {6, 20});
      if (!window) continue;
      EXPECT_LE(window->leaves.size(), 6u);
      EXPECT_EQ(window->drivers.size(), window->inside.outputs().size());
      ASSERT_TRUE(same_function(net.to_circuit(), circuit::with_window(net, *window, window->inside).to_circuit()));
    }
  }
}

TEST(Minimise, PublishedGameOfLifeBecomesSmall) {
  GRADLOOM_NEEDS_DATA();
  const Circuit c = published_life().circuit;
  const Minimised m = circuit::minimise(c);
  EXPECT_TRUE(same_function(c, m.circuit));
  EXPECT_LE(m.circuit.gates.size(), 40u);
}

}  // namespace
}  // namespace gradloom::test
