// Trials of hard rules, 64 starts in a word, and the search that repairs a circuit on them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "gradloom/circuit/run.h"
#include "gradloom/models/logic/harden.h"
#include "gradloom/models/logic/search.h"
#include "tests/models/logic_support.h"

namespace gradloom {
namespace {

using circuit::CellRule;
using circuit::Grid;
using logic::Automaton;
using logic::Trial;
using logic::TrialCompiler;
using logic::TrialRunner;

constexpr std::size_t kHeight = 5, kWidth = 4, kChannels = 2, kCells = kHeight * kWidth;

CellRule random_rule(std::uint64_t seed, circuit::Boundary boundary, std::size_t gates = 60) {
  CellRule rule{kChannels, boundary, {9 * kChannels, {}, {}}};
  const RandomStream random(seed, RandomUse::check);
  for (std::uint32_t g = 0; g < gates; ++g) {
    const auto signals = static_cast<std::uint32_t>(rule.circuit.signals());
    rule.circuit.gates.push_back({static_cast<circuit::Op>(random.below(3 * g, 16)), random.below(3 * g + 1, signals),
                                  random.below(3 * g + 2, signals)});
  }
  rule.circuit.outputs = {static_cast<std::uint32_t>(rule.circuit.signals() - 1),
                          static_cast<std::uint32_t>(rule.circuit.signals() - 2)};
  return rule;
}

Trial random_trial(std::uint64_t seed, circuit::Boundary boundary) {
  Trial trial{.channels = kChannels, .height = kHeight, .width = kWidth, .boundary = boundary};
  const RandomStream random(seed, RandomUse::test);
  for (std::uint32_t i = 0; i < kChannels * kCells; ++i) trial.start.push_back(random.bits(i));
  for (std::uint32_t i = 0; i < kCells; ++i) trial.target.push_back(random.bits(1000 + i));
  trial.looks = {{3, 0xff00ff00ff00ff00u}, {7, ~std::uint64_t{0}}};
  return trial;
}

// Start by start, cell by cell; dead cells as the contract has it.
std::uint64_t wrong_reference(const CellRule& rule, const Trial& trial, unsigned start) {
  Grid grid(kChannels, kHeight, kWidth);
  const auto bit = [&](const std::vector<std::uint64_t>& words, std::size_t i) { return (words[i] >> start & 1) != 0; };
  const auto dead = [&](std::size_t cell, std::size_t step) {
    return !trial.dead.empty() && step < trial.repaired && bit(trial.dead, cell);
  };
  const auto kill = [&](std::size_t step) {
    for (std::size_t i = 0; i < kChannels * kCells; ++i)
      if (dead(i % kCells, step))
        grid.set(static_cast<std::uint32_t>(i / kCells), i % kCells / kWidth, i % kWidth, false);
  };
  for (std::size_t i = 0; i < kChannels * kCells; ++i)
    grid.set(static_cast<std::uint32_t>(i / kCells), i % kCells / kWidth, i % kWidth, bit(trial.start, i));
  kill(0);
  std::uint64_t wrong = 0;
  std::size_t step = 0;
  for (const Trial::Look& look : trial.looks) {
    for (; step < look.step; ++step) {
      grid = circuit::step_reference(rule, grid);
      kill(step);
    }
    for (std::size_t cell = 0; cell < kCells; ++cell)
      wrong += (look.starts >> start & 1) && !dead(cell, look.step - 1) &&
               grid.get(0, cell / kWidth, cell % kWidth) != bit(trial.target, cell);
  }
  return wrong;
}

std::uint64_t wrong_in_all(const CellRule& rule, const Trial& trial) {
  std::uint64_t sum = 0;
  for (unsigned start = 0; start < 64; ++start) sum += wrong_reference(rule, trial, start);
  return sum;
}

TEST(TrialRunner, CountsWhatTheDefinitionCounts) {
  for (const auto boundary : {circuit::Boundary::periodic, circuit::Boundary::zero})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const CellRule rule = random_rule(seed, boundary);
      const Trial trial = random_trial(seed, boundary);
      TrialCompiler compiler;
      EXPECT_EQ(TrialRunner(trial).wrong(compiler.compile(rule.circuit), ~std::uint64_t{0}), wrong_in_all(rule, trial));
    }
}

TEST(TrialRunner, KeepsDeadCellsDeadUntilTheirRepair) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const CellRule rule = random_rule(seed, circuit::Boundary::zero);
    Trial trial = random_trial(seed, circuit::Boundary::zero);
    trial.dead.assign(kCells, 0);
    trial.dead[6] = 0x00ff00ff12345678u;
    trial.dead[7] = ~std::uint64_t{0};
    trial.repaired = 4;
    TrialCompiler compiler;
    EXPECT_EQ(TrialRunner(trial).wrong(compiler.compile(rule.circuit), ~std::uint64_t{0}), wrong_in_all(rule, trial));
  }
}

TEST(TrialRunner, GivesUpAboveTheMostThatIsAllowed) {
  const CellRule rule = random_rule(3, circuit::Boundary::zero);
  const Trial trial = random_trial(3, circuit::Boundary::zero);
  TrialCompiler compiler;
  EXPECT_GT(TrialRunner(trial).wrong(compiler.compile(rule.circuit), 5), 5u);
}

// A rule that turns every bit: where a cell has fired an odd number of times, its bit has changed.
TEST(TrialRunner, CellsOfAsynchronousStartsFireAsOftenAsAsked) {
  CellRule rule{kChannels, circuit::Boundary::zero, {9 * kChannels, {{circuit::Op::not_a, 4, 4}}, {9 * kChannels, 13}}};
  Trial trial = random_trial(5, circuit::Boundary::zero);
  for (std::size_t i = 0; i < kCells; ++i) trial.target[i] = trial.start[i];
  trial.asynchronous = 0xffffffffu;
  trial.fire = 154;
  trial.looks = {{1, 0xffffffffu}};
  TrialCompiler compiler;
  const auto& program = compiler.compile(rule.circuit);
  const double share = static_cast<double>(TrialRunner(trial).wrong(program, ~std::uint64_t{0})) / (32 * kCells);
  EXPECT_NEAR(share, 154.0 / 256, 5 * 0.5 / std::sqrt(32.0 * kCells));
  trial.looks = {{1, 0xffffffff00000000u}};
  EXPECT_EQ(TrialRunner(trial).wrong(program, ~std::uint64_t{0}), 32u * kCells);
  trial.fire = 256;
  trial.looks = {{1, 0xffffffffu}};
  EXPECT_EQ(TrialRunner(trial).wrong(program, ~std::uint64_t{0}), 32u * kCells);
}

TEST(TrialRunner, MutantsInOneWordAreWhatTheyAreAlone) {
  const auto boundary = circuit::Boundary::periodic;
  const CellRule rule = random_rule(7, boundary);
  const Trial trial = random_trial(7, boundary);
  const std::vector<unsigned> lanes{0, 9, 18, 27, 36, 45, 54, 63};
  TrialRunner screen = TrialRunner(trial).repeat(lanes);
  std::vector<std::uint64_t> masks;
  std::vector<logic::Mutation> mutations;
  std::vector<CellRule> alone;
  const RandomStream random(2, RandomUse::check);
  for (std::uint32_t g = 0; g < 8; ++g) {
    masks.push_back(std::uint64_t{0xff} << (8 * g));
    alone.push_back(rule);
    if (g == 0) continue;
    // Two of them touch the same gate.
    const std::uint32_t gate = g == 2 ? 50 : 52 + g % 7;
    const auto op = static_cast<circuit::Op>(random.below(g, 16));
    mutations.push_back({gate, op, g});
    alone.back().circuit.gates[gate].op = op;
    if (g == 3) {
      mutations.push_back({50, circuit::Op::a_xor_b, g});
      alone.back().circuit.gates[50].op = circuit::Op::a_xor_b;
    }
  }
  std::stable_sort(mutations.begin(), mutations.end(), [](const auto& a, const auto& b) { return a.gate < b.gate; });
  TrialCompiler compiler;
  std::vector<std::uint64_t> wrong(8);
  ASSERT_TRUE(screen.wrong_by_group(compiler.compile(rule.circuit, mutations, masks), ~std::uint64_t{0}, wrong));
  for (std::size_t g = 0; g < 8; ++g) {
    std::uint64_t expected = 0;
    for (const unsigned lane : lanes) expected += wrong_reference(alone[g], trial, lane);
    EXPECT_EQ(wrong[g], expected) << "mutant " << g;
  }
}

// A rule without learning: what it does becomes the target, then one of its gates is broken.
class SearchGates : public testing::Test {
 protected:
  SearchGates()
      : model_(options()), parameters_(model_.parameters().flat_size()), buffers_(model_.buffers().flat_size()) {
    model_.initialise(3, parameters_.span(), buffers_.span());
    const RandomStream random(4, RandomUse::check);
    for (std::size_t i = 0; i < parameters_.size(); i += 16)
      parameters_[i + random.below(static_cast<std::uint32_t>(i), 16)] += 20;
    trial_ = random_trial(1, circuit::Boundary::zero);
    trial_.looks = {{2, ~std::uint64_t{0}}};
    const CellRule rule = hard();
    for (unsigned start = 0; start < 64; ++start) {
      Grid grid(kChannels, kHeight, kWidth);
      for (std::size_t i = 0; i < kChannels * kCells; ++i)
        grid.set(static_cast<std::uint32_t>(i / kCells), i % kCells / kWidth, i % kWidth, trial_.start[i] >> start & 1);
      for (int s = 0; s < 2; ++s) grid = circuit::step_reference(rule, grid);
      for (std::size_t cell = 0; cell < kCells; ++cell) {
        trial_.target[cell] &= ~(std::uint64_t{1} << start);
        trial_.target[cell] |= std::uint64_t{grid.get(0, cell / kWidth, cell % kWidth)} << start;
      }
    }
  }

  static logic::AutomatonOptions options() {
    auto o = test::small_automaton(kHeight, kWidth, 2);
    o.boundary = circuit::Boundary::zero;
    return o;
  }
  CellRule hard() { return logic::harden(model_, {parameters_, buffers_}); }
  std::uint64_t wrong() {
    TrialCompiler compiler;
    return TrialRunner(trial_).wrong(compiler.compile(hard().circuit), ~std::uint64_t{0});
  }
  // Turns the function of the last gate of channel 0 into its opposite.
  void break_a_gate() {
    const auto& last = model_.parameters()[model_.update().back().parameter];
    float* z = parameters_.data() + last.offset;
    const auto op = static_cast<std::size_t>(logic::hard_gate(z));
    z[15 - op] = z[op] + 1;
  }
  logic::SearchReport search(unsigned threads) {
    return logic::search_gates<float>(Exec({.threads = threads}), model_, {trial_},
                                      {.mutants = 20000, .seed = 5, .hopeless = 1.0}, buffers_.span(),
                                      parameters_.span());
  }

  Automaton<float> model_;
  Buffer<float> parameters_, buffers_;
  Trial trial_;
};

TEST_F(SearchGates, RepairsABrokenGate) {
  ASSERT_EQ(wrong(), 0u);
  break_a_gate();
  ASSERT_GT(wrong(), 0u);
  const auto report = search(1);
  EXPECT_GT(report.before, 0u);
  EXPECT_EQ(report.after, 0u);
  EXPECT_EQ(wrong(), 0u);
}

TEST_F(SearchGates, LeavesARightCircuitAlone) {
  const std::vector<float> before(parameters_.data(), parameters_.data() + parameters_.size());
  EXPECT_EQ(search(1).mutants, 0u);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), parameters_.data()));
}

TEST_F(SearchGates, FindsTheSameOnEveryNumberOfThreads) {
  break_a_gate();
  const std::vector<float> broken(parameters_.data(), parameters_.data() + parameters_.size());
  search(1);
  const std::vector<float> one(parameters_.data(), parameters_.data() + parameters_.size());
  std::copy(broken.begin(), broken.end(), parameters_.data());
  search(3);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), parameters_.data()));
}

TEST_F(SearchGates, TriesNothingWhereThereIsNoHope) {
  break_a_gate();
  const auto report = logic::search_gates<float>(
      Exec({.threads = 1}), model_, {trial_}, {.mutants = 20000, .hopeless = 0.0}, buffers_.span(), parameters_.span());
  EXPECT_EQ(report.mutants, 0u);
  EXPECT_EQ(report.after, report.before);
}

TEST(Search, KnowsWhereTheLogitsOfEveryHardGateLie) {
  const Automaton<float> model(test::small_automaton(4, 4, 1));
  Buffer<float> parameters(model.parameters().flat_size()), buffers(model.buffers().flat_size());
  model.initialise(1, parameters.span(), buffers.span());
  const auto logits = logic::logits_of_gates(model);
  const RandomStream random(6, RandomUse::check);
  for (std::uint32_t i = 0; i < parameters.size(); ++i) parameters[i] = static_cast<float>(random.uniform(i));
  const CellRule rule = logic::harden(model, {parameters, buffers});
  ASSERT_EQ(logits.size(), rule.circuit.gates.size());
  for (std::size_t g = 0; g < logits.size(); ++g)
    EXPECT_EQ(rule.circuit.gates[g].op, logic::hard_gate(parameters.data() + logits[g]));
}

}  // namespace
}  // namespace gradloom
