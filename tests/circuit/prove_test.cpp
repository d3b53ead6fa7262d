// Proofs hold where circuits are equal, fail where they are not, and say how.
#include "gradloom/circuit/prove.h"

#include <gmock/gmock.h>

#include "gradloom/base/error.h"
#include "gradloom/circuit/minimise.h"
#include "gradloom/circuit/simplify.h"
#include "gradloom/circuit/subprocess.h"
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

TEST(Prove, YosysProvesWideOutputsAndFindsRareDifferences) {
  if (circuit::find_program("yosys").empty()) GTEST_SKIP() << "yosys is not installed";
  const Circuit chain = folded(Op::a_and_b, 40, true), tree = folded(Op::a_and_b, 40, false);
  const Proof p = circuit::prove_equal(one_thread(), chain, tree);
  EXPECT_TRUE(p.proved()) << p.note;
  EXPECT_EQ(p.outputs[0].method, ProofMethod::sat);
  // Random assignments do not find the one in 2^40.
  const Proof q = circuit::prove_equal(one_thread(), chain, {40, {{Op::always_false, 0, 0}}, {40}});
  EXPECT_FALSE(q.equal());
  EXPECT_EQ(q.outputs[0].method, ProofMethod::sat);
}

TEST(Prove, ASolverThatIsMissingIsNamed) {
  const Proof p = circuit::prove_equal(one_thread(), folded(Op::a_and_b, 40, true), folded(Op::a_and_b, 40, false),
                                       {.yosys = {.program = "/nothing/yosys"}});
  EXPECT_FALSE(p.proved());
  EXPECT_TRUE(p.equal());
  EXPECT_THAT(p.note, testing::HasSubstr("/nothing/yosys"));
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
