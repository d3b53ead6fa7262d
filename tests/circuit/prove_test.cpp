// Proofs hold where circuits are equal, fail where they are not, and say how.
#include "gradloom/circuit/prove.h"

#include <gmock/gmock.h>

#include "gradloom/base/error.h"
#include "gradloom/circuit/minimise.h"
#include "gradloom/circuit/sat.h"
#include "gradloom/circuit/simplify.h"
#include "gradloom/circuit/subprocess.h"
#include "gradloom/circuit/yosys.h"
#include "tests/circuit/support.h"

namespace gradloom::test {
namespace {

using circuit::Circuit;
using circuit::Op;
using circuit::Proof;
using circuit::ProofMethod;

const Exec& one_thread() {
  static const Exec exec({1, Variant::fast});
  return exec;
}

// A tree or chain over all inputs.
Circuit folded(Op op, std::uint32_t inputs, bool chain) {
  Circuit c{inputs, {}, {}};
  std::vector<std::uint32_t> left(inputs);
  for (std::uint32_t i = 0; i < inputs; ++i) left[i] = i;
  while (left.size() > 1) {
    c.gates.push_back({op, left[0], left[1]});
    left.erase(left.begin(), left.begin() + 2);
    left.insert(chain ? left.begin() : left.end(), static_cast<std::uint32_t>(c.signals() - 1));
  }
  c.outputs = {left[0]};
  return c;
}

// Two different circuits of the same function: shares nothing with a chain by structure.
Circuit parity_of_nands(std::uint32_t inputs) {
  Circuit c{inputs, {}, {}};
  std::uint32_t last = inputs - 1;
  for (std::uint32_t i = inputs - 1; i-- > 0;) {
    const auto next = [&](circuit::Gate g) {
      c.gates.push_back(g);
      return static_cast<std::uint32_t>(c.signals() - 1);
    };
    const std::uint32_t n = next({Op::nand, last, i}), p = next({Op::nand, last, n}), q = next({Op::nand, i, n});
    last = next({Op::nand, p, q});
  }
  c.outputs = {last};
  return c;
}

TEST(Prove, EqualCircuitsAreProvedExhaustively) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    const Circuit c = random_circuit(seed, 1 + seed % 12, 10 + 3 * seed, 3);
    const Proof p = circuit::prove_equal(one_thread(), c, circuit::simplify(c));
    EXPECT_TRUE(p.proved());
    for (const auto& o : p.outputs) {
      EXPECT_EQ(o.method, ProofMethod::exhaustive);
      EXPECT_EQ(o.assignments, std::uint64_t{1} << o.inputs);
    }
  }
}

TEST(Prove, EveryBrokenGateThatCanBeSeenIsFound) {
  const Circuit c = random_circuit(8, 9, 60, 2);
  for (std::size_t g = 0; g < c.gates.size(); ++g)
    for (unsigned op = 0; op < 16; ++op) {
      Circuit broken = c;
      broken.gates[g].op = static_cast<Op>(op);
      const Proof p = circuit::prove_equal(one_thread(), c, broken);
      ASSERT_EQ(p.equal(), static_cast<bool>(same_function(c, broken))) << g << " " << op;
      if (p.equal()) continue;
      ASSERT_TRUE(p.counter_example);
      std::vector<std::uint64_t> in;
      for (const bool bit : p.counter_example->inputs) in.push_back(bit ? 1 : 0);
      const std::uint32_t o = p.counter_example->output;
      EXPECT_NE(circuit::outputs_for(c, in)[o] & 1, circuit::outputs_for(broken, in)[o] & 1);
    }
}

TEST(Prove, TwentyFourInputsAreTriedOneByOneOnAllThreads) {
  const Circuit chain = folded(Op::a_xor_b, 24, true), tree = folded(Op::a_xor_b, 24, false);
  for (const unsigned threads : {1u, 3u}) {
    const Exec exec({threads, Variant::fast});
    const Proof p = circuit::prove_equal(exec, chain, tree);
    EXPECT_TRUE(p.proved());
    EXPECT_EQ(p.outputs[0].assignments, 1u << 24);
    // One assignment in 2^24 differs: the last one.
    const Proof q = circuit::prove_equal(exec, folded(Op::a_and_b, 24, true), {24, {{Op::always_false, 0, 0}}, {24}});
    ASSERT_FALSE(q.equal());
    EXPECT_EQ(q.counter_example->inputs, std::vector<bool>(24, true));
  }
}

TEST(Prove, WideOutputsNeedStructureOrASolver) {
  const Circuit chain = folded(Op::a_xor_b, 40, true);
  const Proof same =
      circuit::prove_equal(one_thread(), chain, circuit::simplify(chain), {.solver = circuit::Solver::off});
  EXPECT_TRUE(same.proved());
  EXPECT_EQ(same.outputs[0].method, ProofMethod::structural);

  const Proof tested = circuit::prove_equal(one_thread(), chain, parity_of_nands(40), {.solver = circuit::Solver::off});
  EXPECT_TRUE(tested.equal());
  EXPECT_FALSE(tested.proved()) << "random assignments prove nothing";
  EXPECT_EQ(tested.outputs[0].method, ProofMethod::random);
  EXPECT_NE(tested.note, "");

  Circuit broken = parity_of_nands(40);
  broken.gates[50].op = Op::a_or_b;
  EXPECT_FALSE(circuit::prove_equal(one_thread(), chain, broken).equal());
}

bool tells_apart(const circuit::CounterExample& example, const Circuit& a, const Circuit& b) {
  std::vector<std::uint64_t> in;
  for (const bool bit : example.inputs) in.push_back(bit ? 1 : 0);
  return ((circuit::outputs_for(a, in)[example.output] ^ circuit::outputs_for(b, in)[example.output]) & 1) != 0;
}

TEST(Prove, TheSolverProvesWideOutputsAndFindsRareDifferences) {
  const Circuit chain = folded(Op::a_and_b, 40, true), tree = folded(Op::a_and_b, 40, false);
  const Proof p = circuit::prove_equal(one_thread(), chain, tree);
  EXPECT_TRUE(p.proved()) << p.note;
  EXPECT_EQ(p.outputs[0].method, ProofMethod::sat);
  // Random assignments do not find the one in 2^40.
  const Circuit nothing{40, {{Op::always_false, 0, 0}}, {40}};
  const Proof q = circuit::prove_equal(one_thread(), chain, nothing);
  EXPECT_FALSE(q.equal());
  EXPECT_EQ(q.outputs[0].method, ProofMethod::sat);
  ASSERT_TRUE(q.counter_example);
  EXPECT_EQ(q.counter_example->inputs, std::vector<bool>(40, true));
  EXPECT_THAT(circuit::describe(*q.counter_example, chain, nothing),
              testing::AllOf(testing::StartsWith("output 0 is 0 instead of 1 when inputs 0, 1, 2,"),
                             testing::EndsWith(" 39 are 1 and all others are 0")));
}

// Every gate of every function, so that a wrong clause of the encoding is noticed.
TEST(Prove, TheSolverAgreesWithTheDefinitionForEveryGate) {
  for (unsigned op = 0; op < 16; ++op)
    for (unsigned other = 0; other < 16; ++other)
      for (const std::uint32_t b : {0u, 1u, 2u}) {  // of different operands, twice the same, and the inverse
        const auto circuit_of = [&](unsigned table) {
          return Circuit{2, {{Op::not_a, 0, 0}, {static_cast<Op>(table), 0, b}}, {3}};
        };
        const Circuit x = circuit_of(op), y = circuit_of(other);
        const Proof p = circuit::prove_equal(one_thread(), x, y, {.exhaustive_inputs = 0});
        ASSERT_EQ(p.equal(), static_cast<bool>(same_function(x, y))) << op << " " << other << " " << b;
        const auto by_sat = circuit::compare_by_sat(x, y, 1000)[0];
        ASSERT_EQ(by_sat.answer, p.equal() ? circuit::SatAnswer::equal : circuit::SatAnswer::different);
        ASSERT_TRUE(p.equal() || tells_apart({0, by_sat.inputs}, x, y)) << op << " " << other << " " << b;
      }
}

TEST(Prove, TheSolverFindsEveryBrokenGateThatCanBeSeen) {
  const Circuit c = random_circuit(8, 9, 60, 4);
  for (std::size_t g = 0; g < c.gates.size(); ++g) {
    Circuit broken = c;
    broken.gates[g].op = static_cast<Op>(15 - static_cast<unsigned>(c.gates[g].op));
    const auto answers = circuit::compare_by_sat(c, broken, 100000);
    for (std::uint32_t o = 0; o < answers.size(); ++o) {
      Circuit one = c, other = broken;
      one.outputs = {c.outputs[o]};
      other.outputs = {broken.outputs[o]};
      const bool same = static_cast<bool>(same_function(one, other));
      ASSERT_EQ(answers[o].answer, same ? circuit::SatAnswer::equal : circuit::SatAnswer::different) << g << " " << o;
      EXPECT_TRUE(same || tells_apart({o, answers[o].inputs}, c, broken)) << g << " " << o;
    }
  }
}

TEST(Prove, TheSolverManagesLargeCircuitsAndEmptyOnes) {
  // 30,000 gates, then a disjunction: as one gate, as three, and with one operand inverted.
  Circuit one_gate = random_circuit(3, 40, 30000, 1), three_gates = one_gate, differs = one_gate;
  const auto last = static_cast<std::uint32_t>(one_gate.signals());
  one_gate.gates.push_back({Op::a_or_b, last - 1, 7});
  one_gate.outputs = {last};
  three_gates.gates.insert(three_gates.gates.end(),
                           {{Op::a_xor_b, last - 1, 7}, {Op::a_and_b, last - 1, 7}, {Op::a_xor_b, last, last + 1}});
  three_gates.outputs = {last + 2};
  differs.gates.push_back({Op::a_or_not_b, last - 1, 7});
  differs.outputs = {last};
  EXPECT_EQ(circuit::compare_by_sat(one_gate, three_gates, 100000)[0].answer, circuit::SatAnswer::equal);
  const auto found = circuit::compare_by_sat(one_gate, differs, 100000)[0];
  ASSERT_EQ(found.answer, circuit::SatAnswer::different);
  EXPECT_TRUE(tells_apart({0, found.inputs}, one_gate, differs));
  EXPECT_TRUE(circuit::compare_by_sat({3, {}, {}}, {3, {}, {}}, 10).empty());
  const Circuit one{1, {{Op::always_true, 0, 0}}, {1}}, never{1, {{Op::always_false, 0, 0}}, {1}};
  EXPECT_EQ(circuit::compare_by_sat(one, one, 10)[0].answer, circuit::SatAnswer::equal);
  EXPECT_EQ(circuit::compare_by_sat(one, never, 10)[0].answer, circuit::SatAnswer::different);
  EXPECT_EQ(circuit::compare_by_sat({2, {}, {0}}, {2, {}, {1}}, 10)[0].answer, circuit::SatAnswer::different);
  EXPECT_TRUE(circuit::prove_equal(one_thread(), {2, {}, {}}, {2, {}, {}}).proved());
}

TEST(Prove, ASolverThatGivesUpIsNamed) {
  const Proof p =
      circuit::prove_equal(one_thread(), folded(Op::a_xor_b, 40, true), parity_of_nands(40), {.conflicts = 10});
  EXPECT_FALSE(p.proved());
  EXPECT_TRUE(p.equal());
  EXPECT_EQ(p.outputs[0].method, ProofMethod::random);
  EXPECT_THAT(p.note, testing::HasSubstr("gave up after 10 conflicts"));
}

TEST(Prove, CircuitsOfDifferentShapeAreRefused) {
  EXPECT_THROW(circuit::prove_equal(one_thread(), {2, {}, {0}}, {3, {}, {0}}), Exception);
  EXPECT_THROW(circuit::prove_equal(one_thread(), {2, {}, {0}}, {2, {}, {0, 1}}), Exception);
}

TEST(Yosys, MinimisesWithoutChangingTheFunction) {
  if (circuit::find_program("yosys").empty()) GTEST_SKIP() << "yosys is not installed";
  for (const Circuit& c :
       {random_circuit(3, 9, 80, 3), random_circuit(4, 1, 5, 1), Circuit{2, {{Op::always_true, 0, 0}}, {2, 1}}}) {
    const Circuit m = circuit::minimise_with_yosys(c).or_throw();
    EXPECT_TRUE(circuit::prove_equal(one_thread(), c, m).proved());
    EXPECT_LE(circuit::simplify(m).gates.size(), circuit::simplify(c).gates.size() + c.outputs.size());
  }
}

TEST(Yosys, AbsenceIsNamed) {
  const auto r = circuit::minimise_with_yosys({2, {}, {0}}, {.program = "/nothing/yosys"});
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(r.error().message, testing::HasSubstr("/nothing/yosys"));
}

TEST(Blif, CyclesAndUnknownNamesAreRefused) {
  const auto message = [](const char* text) {
    const auto r = circuit::parse_blif(text, 2, 1);
    return r ? std::string() : r.error().message;
  };
  EXPECT_EQ(message(".model x\n.inputs in[0] in[1]\n.outputs out[0]\n.names in[0] in[1] out[0]\n11 1\n.end\n"), "");
  EXPECT_THAT(message(".names a out[0]\n1 1\n.names out[0] a\n1 1\n"), testing::HasSubstr("itself"));
  EXPECT_THAT(message(".names a out[0]\n1 1\n"), testing::HasSubstr("'a' is not defined"));
  EXPECT_THAT(message(".names in[2] out[0]\n1 1\n"), testing::HasSubstr("in[2]"));
  EXPECT_THAT(message(".names in[0] in[1] in[0] out[0]\n111 1\n"), testing::HasSubstr("two inputs"));
  EXPECT_THAT(message(".latch a b\n"), testing::HasSubstr(".latch"));
  EXPECT_THAT(message(""), testing::HasSubstr("out[0]"));
}

}  // namespace
}  // namespace gradloom::test
