// Names of rules that count neighbours.
#include "gradloom/circuit/life_rule.h"

#include <gtest/gtest.h>

#include "tests/circuit/support.h"

namespace gradloom::test {
namespace {

using circuit::CellRule;
using circuit::Op;

// A rule of one gate; input 4 is the cell, 3 its left neighbour.
CellRule one_gate(Op op, std::uint32_t a, std::uint32_t b) {
  return {1, circuit::Boundary::periodic, {9, {{op, a, b}}, {9}}};
}

TEST(LifeRule, NamesRulesThatCountNeighbours) {
  EXPECT_EQ(circuit::life_rule(one_gate(Op::a, 4, 4)), "B/S012345678");  // nothing ever changes
  EXPECT_EQ(circuit::life_rule(one_gate(Op::always_false, 4, 4)), "B/S");
  EXPECT_EQ(circuit::life_rule(one_gate(Op::not_a, 4, 4)), "B012345678/S");
}

TEST(LifeRule, OthersHaveNoName) {
  EXPECT_EQ(circuit::life_rule(one_gate(Op::a, 3, 4)), "");  // a shift
  EXPECT_EQ(circuit::life_rule(one_gate(Op::a_or_b, 3, 4)), "");
  CellRule two = one_gate(Op::a, 4, 4);
  two.channels = 2, two.circuit.inputs = 18, two.circuit.outputs = {18, 18};
  EXPECT_EQ(circuit::life_rule(two), "");
}

TEST(LifeRule, ReadsNamesInEveryForm) {
  for (const char* name : {"B3/S23", "b3/s23", "S23/B3", "23/3", "B3/S32", "B3/S23:T80,60"})
    EXPECT_EQ(circuit::standard_rule(name), "B3/S23") << name;
  EXPECT_EQ(circuit::standard_rule("B36/S23"), "B36/S23");
  EXPECT_EQ(circuit::standard_rule("/"), "B/S");
  for (const char* name : {"", "Life", "B3", "B9/S", "B3/S2x", "B3/23", "3/S23", "B3/B3", "WireWorld", "345/3/6"})
    EXPECT_EQ(circuit::standard_rule(name), "") << name;
}

}  // namespace
}  // namespace gradloom::test
