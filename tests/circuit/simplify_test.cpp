// Validation, simplification and slicing.
#include "gradloom/circuit/simplify.h"

#include <gmock/gmock.h>

#include "gradloom/base/error.h"
#include "gradloom/circuit/validate.h"
#include "tests/circuit/support.h"

namespace gradloom::test {
namespace {

using circuit::Circuit;
using circuit::Op;
using testing::HasSubstr;

TEST(CircuitValidation, NamesWhatIsWrong) {
  const auto message = [](const Circuit& c) {
    const auto r = circuit::validate(c);
    return r ? std::string() : r.error().message;
  };
  EXPECT_EQ(message({2, {{Op::a_and_b, 0, 1}}, {2}}), "");
  EXPECT_EQ(message({0, {{Op::always_true, 0, 0}}, {0}}), "") << "a constant without inputs";
  EXPECT_THAT(message({0, {{Op::not_a, 0, 0}}, {0}}), HasSubstr("gate 0"));
  EXPECT_THAT(message({2, {{Op::a_and_b, 0, 2}}, {2}}), HasSubstr("before their own"));
  EXPECT_THAT(message({2, {{Op::a_and_b, 0, 7}}, {2}}), HasSubstr("signal 7, which does not exist"));
  EXPECT_THAT(message({2, {{Op::a_and_b, 0, 3}, {Op::a_or_b, 2, 1}}, {2}}),
              HasSubstr("gate 0 (signal 2) reads signal 3"));
  EXPECT_THAT(message({2, {{static_cast<Op>(16), 0, 1}}, {2}}), HasSubstr("op 16"));
  EXPECT_THAT(message({2, {}, {2}}), HasSubstr("output 0"));
  circuit::CellRule rule{1, circuit::Boundary::zero, {9, {}, {4, 4}}};
  EXPECT_THAT(circuit::validate(rule).error().message, HasSubstr("it has 2"));
  rule.circuit = {8, {}, {4}};
  EXPECT_THAT(circuit::validate(rule).error().message, HasSubstr("needs 9 inputs"));
  EXPECT_THROW(circuit::simplify({2, {{Op::a_and_b, 0, 7}}, {2}}), Exception);
}

TEST(CircuitSize, CountsActiveGatesAndDepth) {
  const Circuit c{
      3, {{Op::a, 0, 1}, {Op::a_xor_b, 3, 1}, {Op::always_true, 0, 0}, {Op::a_or_b, 4, 5}, {Op::b, 0, 2}}, {4, 7}};
  const circuit::CircuitSize size = circuit::size_of(c);
  EXPECT_EQ(size, (circuit::CircuitSize{5, 3, 1, 3}));
}

TEST(Simplify, KeepsTheFunctionOfRandomCircuits) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Circuit c = random_circuit(seed, 1 + seed % 11, 5 + seed, 1 + seed % 5);
    const Circuit s = circuit::simplify(c);
    ASSERT_TRUE(circuit::validate(s).ok());
    ASSERT_TRUE(same_function(c, s)) << "seed " << seed;
    EXPECT_LE(circuit::size_of(s).depth, c.gates.size());
  }
}

TEST(Simplify, EveryOpOfEveryPairOfOperandsStaysWhatItIs) {
  for (unsigned op = 0; op < 16; ++op)
    for (unsigned outer = 0; outer < 16; ++outer) {
      Circuit c{2, {{static_cast<Op>(op), 0, 1}}, {}};
      for (std::uint32_t a = 0; a < 3; ++a)
        for (std::uint32_t b = 0; b < 3; ++b) c.gates.push_back({static_cast<Op>(outer), a, b});
      for (std::uint32_t s = 0; s < c.signals(); ++s) c.outputs.push_back(s);
      ASSERT_TRUE(same_function(c, circuit::simplify(c))) << op << " in " << outer;
    }
}

TEST(Simplify, FoldsSharesAndAbsorbs) {
  // Equal up to the order of operands and inverters, behind pass-throughs; one is dead.
  const Circuit c{2,
                  {{Op::a_and_b, 0, 1},   // 2
                   {Op::nand, 1, 0},      // 3 = !2
                   {Op::not_a, 3, 0},     // 4 = 2
                   {Op::a, 4, 1},         // 5 = 2
                   {Op::a_xor_b, 2, 5},   // 6 = 0
                   {Op::a_or_b, 6, 5},    // 7 = 2
                   {Op::a_xor_b, 0, 1}},  // dead
                  {7, 4}};
  const Circuit s = circuit::simplify(c);
  EXPECT_EQ(s.gates, (std::vector<circuit::Gate>{{Op::a_and_b, 0, 1}}));
  EXPECT_EQ(s.outputs, (std::vector<std::uint32_t>{2, 2}));
}

TEST(Simplify, NeedsAnInverterOnlyForBothPolaritiesOfAnOutput) {
  const Circuit one{2, {{Op::a_or_b, 0, 1}, {Op::not_a, 2, 2}}, {3}};
  EXPECT_EQ(circuit::simplify(one).gates.size(), 1u);
  const Circuit both{2, {{Op::a_or_b, 0, 1}, {Op::not_a, 2, 2}}, {2, 3}};
  EXPECT_EQ(circuit::simplify(both).gates.size(), 2u);
}

TEST(Slice, KeepsWhatAnObservedChannelDependsOnThroughTime) {
  // 0 reads 2, 2 reads 3 and itself; 1 reads 0 and nobody reads 1; 3 is a constant.
  circuit::CellRule rule{
      4, circuit::Boundary::zero, {36, {{Op::a_xor_b, 18, 31}, {Op::always_true, 0, 0}}, {22, 4, 36, 37}}};
  const std::uint32_t observed[] = {0};
  const circuit::SlicedRule sliced = circuit::slice(rule, observed);
  EXPECT_EQ(sliced.rule.channels, 3u);
  EXPECT_EQ(sliced.channel_of, (std::vector<std::int64_t>{0, -1, 1, 2}));
  EXPECT_EQ(sliced.rule.circuit.outputs[0], 9u + 4u);
  EXPECT_TRUE(circuit::validate(sliced.rule).ok());
  EXPECT_EQ(sliced.rule.boundary, circuit::Boundary::zero);
  EXPECT_THROW(circuit::slice(rule, std::vector<std::uint32_t>{4}), Exception);
  EXPECT_THROW(circuit::slice(rule, {}), Exception);
}

TEST(GateList, PublishedGameOfLifeIsConwaysRule) {
  GRADLOOM_NEEDS_DATA();
  const circuit::CellRule rule = published_life();
  EXPECT_EQ(rule.circuit.gates.size(), 223u);
  for (const Circuit& c : {rule.circuit, circuit::simplify(rule.circuit)})
    for (unsigned patch = 0; patch < 512; ++patch) {
      std::vector<std::uint64_t> in(9);
      for (unsigned i = 0; i < 9; ++i) in[i] = patch >> i & 1;
      ASSERT_EQ(circuit::outputs_for(c, in)[0] & 1, life_of(patch) ? 1u : 0u) << patch;
    }
}

TEST(GateList, NamesTheLineThatIsWrong) {
  const auto message = [](const char* text) {
    const auto r = circuit::read_gate_list(text, 1, circuit::Boundary::zero);
    return r ? std::string() : r.error().message;
  };
  EXPECT_EQ(message("INPUT i_4 x\n# nothing\nGATE g Not i_4\nOUTPUT o_0 g\n"), "");
  EXPECT_THAT(message("INPUT i_9 x\n"), HasSubstr("line 1"));
  EXPECT_THAT(message("INPUT i_4 x\nGATE g Nott i_4\n"), HasSubstr("Nott"));
  EXPECT_THAT(message("INPUT i_4 x\nGATE g And i_4\n"), HasSubstr("operands"));
  EXPECT_THAT(message("GATE g Not i_4\n"), HasSubstr("'i_4' is not known yet"));
  EXPECT_THAT(message("INPUT i_4 x\n"), HasSubstr("output 0 is missing"));
}

}  // namespace
}  // namespace gradloom::test
