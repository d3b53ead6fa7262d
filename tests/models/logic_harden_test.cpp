// A hard circuit computes what the soft model computes once its gates are decided.
#include <gtest/gtest.h>

#include "gradloom/models/logic/harden.h"
#include "tests/models/logic_support.h"

namespace gradloom {
namespace {

using circuit::Op;
using logic::Automaton;
using test::LogicFixture;

std::vector<bool> run(const circuit::Circuit& c, std::vector<bool> signals) {
  for (const circuit::Gate& g : c.gates) signals.push_back(circuit::apply(g.op, signals[g.a], signals[g.b]));
  std::vector<bool> out;
  for (const std::uint32_t o : c.outputs) out.push_back(signals[o]);
  return out;
}

// Every gate is a random function beyond doubt.
template <class M>
void decide_all(LogicFixture<M>& f) {
  const RandomStream random(8, RandomUse::check);
  std::uint32_t at = 0;
  for (const Slice& slice : f.model.parameters())
    for (std::size_t i = slice.offset; i < slice.end(); i += 16) {
      std::fill_n(f.parameters.data() + i, 16, 0.0);
      f.parameters[i + random.below(at++, 16)] = 1000.0;
    }
  for (double& v : f.x.span()) v = random.uniform(at++) < 0.5 ? 0.0 : 1.0;
}

TEST(Harden, TheLargestLogitWinsAndTheLowestNumberOnTies) {
  std::vector<float> z(16, 1.0f);
  EXPECT_EQ(logic::hard_gate(z.data()), Op::always_false);
  z[9] = z[12] = 2.0f;
  EXPECT_EQ(logic::hard_gate(z.data()), Op::xnor);
}

TEST(Harden, AutomatonAndItsCellRuleAgreeOnEveryCellAndStep) {
  for (const auto boundary : {circuit::Boundary::periodic, circuit::Boundary::zero}) {
    auto o = test::small_automaton(5, 4, 6);
    o.boundary = boundary, o.target_channels = 2;
    LogicFixture<Automaton<double>> f(Automaton<double>(o), 1);
    decide_all(f);
    const circuit::CellRule rule = logic::harden(f.model, f.arrays());
    EXPECT_EQ(rule.circuit.gates.size(), f.model.gate_evaluations());
    EXPECT_EQ(rule.circuit.inputs, 18u);
    EXPECT_EQ(rule.boundary, boundary);
    f.forward_backward(Exec({.threads = 1}));
    std::vector<bool> now(f.x.size());
    for (std::size_t i = 0; i < now.size(); ++i) now[i] = f.x[i] > 0.5;
    for (std::size_t t = 0; t < o.steps; ++t) {
      std::vector<bool> next(now.size());
      for (int y = 0; y < 5; ++y)
        for (int x = 0; x < 4; ++x) {
          std::vector<bool> patch;
          for (std::size_t c = 0; c < 2; ++c)
            for (int p = 0; p < 9; ++p) {
              int row = y + p / 3 - 1, column = x + p % 3 - 1;
              const bool inside = row >= 0 && row < 5 && column >= 0 && column < 4;
              row = (row + 5) % 5, column = (column + 4) % 4;
              patch.push_back((inside || boundary == circuit::Boundary::periodic) &&
                              now[c * 20 + static_cast<std::size_t>(row * 4 + column)]);
            }
          const auto out = run(rule.circuit, patch);
          for (std::size_t c = 0; c < 2; ++c) next[c * 20 + static_cast<std::size_t>(y * 4 + x)] = out[c];
        }
      now = next;
    }
    for (std::size_t i = 0; i < now.size(); ++i) EXPECT_EQ(f.y[i], now[i] ? 1.0 : 0.0) << i;
  }
}

TEST(Harden, ClassifierAndItsCircuitCountTheSameVotes) {
  logic::ClassifierOptions o;
  o.inputs = 12, o.layers = {24, 20, 15}, o.classes = 3, o.tau = 2;
  LogicFixture<logic::GateClassifier<double>> f(logic::GateClassifier<double>(o), 30);
  decide_all(f);
  f.forward_backward(Exec({.threads = 1}));
  const circuit::Circuit c = logic::harden(f.model, f.arrays());
  for (std::size_t s = 0; s < f.batch; ++s) {
    std::vector<bool> x;
    for (std::size_t i = 0; i < 12; ++i) x.push_back(f.x[s * 12 + i] > 0.5);
    const auto out = run(c, x);
    ASSERT_EQ(out.size(), 15u);
    for (std::size_t k = 0; k < 3; ++k) {
      double votes = 0;
      for (std::size_t v = 0; v < 5; ++v) votes += out[k * 5 + v];
      EXPECT_EQ(f.y[s * f.stride + k], votes / 2);
    }
  }
}

TEST(Harden, PassThroughGatesAreNotActive) {
  const Automaton<float> m(test::small_automaton(4, 4, 1));
  std::vector<float> p(m.parameters().flat_size()), b(m.buffers().flat_size());
  m.initialise(1, p, b);
  EXPECT_EQ(logic::active_gates<float>(m.parameters(), p), 0u);
  p[m.parameters()[0].offset + 6] = 11.0f;   // a XOR
  p[m.parameters()[1].offset + 5] = 11.0f;   // B passes through too
  p[m.parameters()[2].offset + 12] = 11.0f;  // NOT A
  EXPECT_EQ(logic::active_gates<float>(m.parameters(), p), 2u);
}

}  // namespace
}  // namespace gradloom
