// What the automaton computes, and that it does not depend on threads, instruction set or variant.
#include <gmock/gmock.h>

#include <cmath>

#include "gradloom/data/rows.h"
#include "gradloom/kernels/simd_targets.h"
#include "gradloom/train/gradient_check.h"
#include "tests/models/logic_support.h"
#include "tests/support/sanitized.h"

namespace gradloom {
namespace {

using logic::Automaton;
using logic::AutomatonOptions;
using logic::Boundary;
using test::expect_same;
using test::LogicFixture;
using test::same_bits;
using test::small_automaton;
using ::testing::HasSubstr;

template <class M, class Options>
void expect_independence(const Options& o, std::size_t batch) {
  LogicFixture<M> one(M(o), batch);
  one.forward_backward(Exec({.threads = 1}));
  for (const unsigned threads : {2u, 3u, 8u}) {
    LogicFixture<M> many(M(o), batch);
    many.forward_backward(Exec({.threads = threads}));
    expect_same(one, many, std::to_string(threads) + " threads");
  }
  LogicFixture<M> reference(M(o), batch);
  reference.forward_backward(Exec({.threads = 2, .variant = Variant::reference}));
  expect_same(one, reference, "reference");
  for (const std::string& target : kernels::simd_targets()) {
    const kernels::ForceSimdTarget force(target);
    LogicFixture<M> other(M(o), batch);
    other.forward_backward(Exec({.threads = 1}));
    expect_same(one, other, target);
  }
}

TEST(Automaton, ThreadsTargetsAndReferenceGiveTheSameBits) {
  for (const double fire : {1.0, 0.6})
    for (const auto& [height, width, batch] : {std::tuple<std::size_t, std::size_t, std::size_t>{3, 3, 20},
                                               {16, 16, 2},
                                               {1, 7, 1},
                                               {40, 30, 3},
                                               {3, 18, 2}}) {
      AutomatonOptions o = small_automaton(height, width, 3);
      o.fire_probability = fire;
      o.boundary = batch % 2 == 0 ? Boundary::periodic : Boundary::zero;
      expect_independence<Automaton<float>>(o, batch);
      expect_independence<Automaton<double>>(o, batch);
      if (HasFailure()) return;
    }
}

// Perception of one layer and one kernel, as in the recipe `picture`: fans, and all channels together.
TEST(Automaton, ThreadsTargetsAndReferenceGiveTheSameBitsWithPerceptionOfOneLayer) {
  for (const double fire : {1.0, 0.6})
    for (const std::size_t channels : {1, 3, 5}) {
      AutomatonOptions o = small_automaton(7, 20, 3);
      o.channels = channels, o.kernels = 1;
      o.perception = {8};
      o.update = {9 * channels, 5 * channels, 3 * channels, 2 * channels, channels};
      o.fire_probability = fire;
      o.boundary = channels == 3 ? Boundary::zero : Boundary::periodic;
      expect_independence<Automaton<float>>(o, 2);
      expect_independence<Automaton<double>>(o, 2);
      if (HasFailure()) return;
    }
}

TEST(GateClassifier, ThreadsTargetsAndReferenceGiveTheSameBits) {
  logic::ClassifierOptions o;
  o.inputs = 40, o.layers = {90, 64, 30}, o.classes = 10, o.tau = 3;
  for (const std::size_t batch : {1, 16, 100, 700}) {
    expect_independence<logic::GateClassifier<float>>(o, batch);
    expect_independence<logic::GateClassifier<double>>(o, batch);
  }
}

TEST(Automaton, TileFunctionIsPure) {
  const Automaton<float> m(small_automaton(4, 4, 1));
  LogicFixture<Automaton<float>> f(Automaton<float>(m.options()), 1);
  const Exec ex({.threads = 1});
  std::vector<kernels::gate::Gate<float>> gates(m.gates());
  const auto plans = m.plan(f.buffers.span(), gates);
  m.prepare(ex, f.arrays(), plans, gates);
  const std::size_t channels = 2, tile = kernels::gate::kTile;
  const RandomStream random(1, RandomUse::check);
  std::vector<float> patch(channels * 9 * tile), dl_dout(channels * tile), scratch(m.shape().scratch(), NAN);
  for (std::size_t i = 0; i < patch.size(); ++i)
    patch[i] = static_cast<float>(random.uniform(static_cast<std::uint32_t>(i)));
  for (std::size_t i = 0; i < dl_dout.size(); ++i)
    dl_dout[i] = static_cast<float>(random.normal(static_cast<std::uint32_t>(10'000 + i)));
  const auto patch_before = patch, dl_dout_before = dl_dout;
  std::vector<float> first_patch, first_sums;
  for (int call = 0; call < 2; ++call) {
    std::vector<float> dl_dpatch(patch.size(), static_cast<float>(call)), sums(m.gates() * kernels::gate::kPartial);
    logic::tile_gradient<float>(Variant::fast, m.shape(), {gates, plans},
                                {patch.data(), dl_dout.data(), dl_dpatch.data(), sums.data()}, scratch.data());
    // Rows that lie apart: the same numbers, and nothing between them.
    const std::size_t apart = tile + 7;
    std::vector<float> spread(channels * 9 * apart, 5.0f), spread_sums(sums.size());
    logic::tile_gradient<float>(Variant::fast, m.shape(), {gates, plans},
                                {patch.data(), dl_dout.data(), spread.data(), spread_sums.data(), apart},
                                scratch.data());
    for (std::size_t i = 0; i < spread.size(); ++i) {
      const float expected = i % apart < tile ? dl_dpatch[i / apart * tile + i % apart] : 5.0f;
      ASSERT_EQ(std::memcmp(&spread[i], &expected, sizeof(float)), 0) << i;
    }
    EXPECT_TRUE(same_bits<float>(spread_sums, sums));
    if (call == 0) first_patch = dl_dpatch, first_sums = sums;
    EXPECT_TRUE(same_bits<float>(first_patch, dl_dpatch));
    EXPECT_TRUE(same_bits<float>(first_sums, sums));
    EXPECT_NE(sums[0], 0.0f);
  }
  EXPECT_EQ(patch, patch_before);
  EXPECT_EQ(dl_dout, dl_dout_before);
}

// A function of the mixture that wins beyond rounding.
void decide(std::span<double> parameters, std::size_t first, circuit::Op op) {
  std::fill_n(parameters.begin() + static_cast<std::ptrdiff_t>(first), 16, 0.0);
  parameters[first + static_cast<std::size_t>(op)] = 1000.0;
}

TEST(Automaton, UpdateReadsCentresThenPerceptionByChannelOutputAndKernel) {
  AutomatonOptions o = small_automaton(3, 3, 1);
  o.kernels = 2;
  o.wires = logic::WireKind::random;
  o.update = {2};
  LogicFixture<Automaton<double>> f(Automaton<double>(o), 1);
  const auto& m = f.model;
  // Every gate passes a on; the last layer of kernel 1 inverts it.
  for (const Slice& slice : m.parameters())
    for (std::size_t at = slice.offset; at < slice.end(); at += 16) decide(f.parameters.span(), at, circuit::Op::a);
  const auto& last = m.perception().back();
  for (std::size_t j = 0; j < last.gates; ++j)
    decide(f.parameters.span(), m.parameters()[last.parameter].offset + (last.gates + j) * 16, circuit::Op::not_a);
  const auto neighbour_of = [&](std::size_t j) {  // which position output j of a kernel sees
    for (std::size_t l = m.perception().size(); l-- > 0;) j = m.wires(m.perception()[l], f.buffers.span())[j].a;
    return j;
  };
  double* wires = f.buffers.data() + m.buffers()[m.update()[0].buffer].offset;
  const Exec ex({.threads = 1});
  auto tape = m.make_tape(ex, {.batch = 1});
  const std::size_t centre = 4;  // of the grid: its patch is the grid itself
  for (std::size_t input = 0; input < 2 + 2 * 2 * 2; ++input) {
    wires[0] = static_cast<double>(input);
    m.forward(ex, {}, f.arrays(), f.rows(), tape, f.y_view());
    double expected = input < 2 ? f.x[input * 9 + centre] : 0.0;
    if (input >= 2) {
      const std::size_t k = (input - 2) % 2, j = (input - 2) / 2 % 2, c = (input - 2) / 4;
      expected = f.x[c * 9 + neighbour_of(j)];
      if (k == 1) expected = 1 - expected;
    }
    EXPECT_NEAR(f.y[centre], expected, 1e-15) << input;
  }
}

TEST(Automaton, OutputsAreTheFirstChannels) {
  AutomatonOptions o = small_automaton(3, 4, 2);
  o.channels = 3, o.target_channels = 2, o.update = {12, 6, 3};
  LogicFixture<Automaton<double>> f(Automaton<double>(o), 2);
  EXPECT_EQ(f.model.output_width(), 24u);
  const Exec ex({.threads = 1});
  auto tape = f.model.make_tape(ex, {.batch = 2});
  f.model.forward(ex, {}, f.arrays(), f.rows(), tape, f.y_view());
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t c = 0; c < 2; ++c)
      for (std::size_t n = 0; n < 12; ++n) EXPECT_EQ(f.y[s * f.stride + c * 12 + n], f.model.state(tape, s, 2, c, n));
}

TEST(Automaton, WithoutBackwardTheTapeKeepsTwoGridsAndTheBitsStay) {
  LogicFixture<Automaton<float>> with(Automaton<float>(small_automaton(9, 9, 5)), 2),
      without = LogicFixture<Automaton<float>>(Automaton<float>(small_automaton(9, 9, 5)), 2);
  const Exec ex({.threads = 1});
  auto tape = with.model.make_tape(ex, {.batch = 2}),
       small = without.model.make_tape(ex, {.batch = 2, .backward = false});
  with.model.forward(ex, {}, with.arrays(), with.rows(), tape, with.y_view());
  without.model.forward(ex, {}, without.arrays(), without.rows(), small, without.y_view());
  EXPECT_TRUE(same_bits(with.y, without.y));
  EXPECT_LT(small.grid_bytes(), tape.grid_bytes());
  EXPECT_THROW(without.model.backward(ex, {.arrays = without.arrays(),
                                           .batch = without.rows(),
                                           .tape = small,
                                           .dl_dy = without.dl_dy_view(),
                                           .gradient = without.gradient}),
               Exception);
}

TEST(Automaton, ScratchDependsOnTheCircuitAlone) {
  const Exec ex({.threads = 2});
  const auto tape_of = [&](std::size_t side, std::size_t steps) {
    return Automaton<float>(small_automaton(side, side, steps)).make_tape(ex, {.batch = 2});
  };
  EXPECT_EQ(tape_of(3, 1).scratch_bytes_per_thread(), tape_of(128, 40).scratch_bytes_per_thread());
  // Of what is kept per step there are only grids: 2 samples, 2 channels, 18 x 18 numbers each, with room for a
  // tile behind the last (15 more), in whole tiles.
  EXPECT_EQ(tape_of(16, 40).grid_bytes(), 41 * 2 * 672 * sizeof(float));
  EXPECT_EQ(tape_of(16, 40).bytes() - tape_of(16, 20).bytes(), 20 * 2 * 672 * sizeof(float));

  AutomatonOptions lizard;  // the widest of the published automata
  lizard.channels = 128, lizard.kernels = 4, lizard.height = lizard.width = 20, lizard.steps = 12;
  lizard.update.assign(8, 512);
  lizard.update.insert(lizard.update.end(), {256, 128});
  const Automaton<float> m(lizard);
  EXPECT_EQ(m.gates(), 4540u);
  EXPECT_LE(m.make_tape(ex, {.batch = 1}).scratch_bytes_per_thread(), std::size_t{4} << 20);
  AutomatonOptions large = small_automaton(300, 3000, 1);
  EXPECT_LE(Automaton<float>(large).make_tape(ex, {.batch = 2}).patch_bytes(), std::size_t{4} << 20);
}

TEST(Automaton, CountsGatesAsPublished) {
  AutomatonOptions o;
  o.channels = 8, o.perception = {8, 4, 2};
  o.update.assign(10, 256);
  o.update.insert(o.update.end(), {128, 64, 32, 16, 8, 8});
  const Automaton<float> m(o);
  EXPECT_EQ(m.gates(), 3040u);
  EXPECT_EQ(m.gate_evaluations(), 4608u);
}

TEST(Automaton, GradientIsRightInParallelOnAGridThatIsCutIntoBands) {
  AutomatonOptions o = small_automaton(11, 4000, 2);
  for (const double fire : {1.0, 0.6})
    for (const Boundary boundary : {Boundary::periodic, Boundary::zero}) {
      o.boundary = boundary, o.fire_probability = fire;
      LogicFixture<Automaton<double>> f(Automaton<double>(o), 1);
      const Exec ex({.threads = 2});
      ASSERT_LT(f.model.make_tape(ex, {.batch = 1}).patch_bytes(), 11 * 4000 * 18 * sizeof(double)) << "not cut";
      f.forward_backward(ex);
      // Against dl_dx by differences at cells of the first, second, last and inner rows.
      auto tape = f.model.make_tape(ex, {.batch = 1});
      const auto value = [&] {
        f.model.forward(ex, {}, f.arrays(), f.rows(), tape, f.y_view());
        double sum = 0.0;
        for (std::size_t j = 0; j < f.model.output_width(); ++j) sum += f.dl_dy[j] * f.y[j];
        return sum;
      };
      double largest = 0.0;
      for (const double g : f.dl_dx.span()) largest = std::max(largest, std::abs(g));
      for (const std::size_t row : test::thinned<std::size_t>({0, 1, 2, 3, 4, 5, 6, 7, 9, 10})) {
        const std::size_t cell = row * 4000 + row * 399;
        const double centre = f.x[cell], h = 1e-4;
        f.x[cell] = centre + h;
        const double high = value();
        f.x[cell] = centre - h;
        const double low = value();
        f.x[cell] = centre;
        EXPECT_NEAR((high - low) / (2 * h), f.dl_dx[cell], 1e-6 * largest) << "row " << row;
      }
    }
}

TEST(Automaton, RestingCellsKeepTheirStateAndMasksAreFunctionsOfTheStep) {
  AutomatonOptions o = small_automaton(12, 12, 3);
  o.fire_probability = 0.6;
  LogicFixture<Automaton<double>> f(Automaton<double>(o), 2);
  const Exec ex({.threads = 1});
  auto tape = f.model.make_tape(ex, {.batch = 2});
  Step step;
  step.seed = 5, step.epoch = 2, step.index = 1;
  f.model.forward(ex, step, f.arrays(), f.rows(), tape, f.y_view());
  std::size_t fired = 0, differ = 0;
  Step next = step;
  next.index = 2;
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t t = 0; t < 3; ++t)
      for (std::size_t n = 0; n < 144; ++n) {
        fired += f.model.fires(step, s, t, n);
        differ += f.model.fires(step, s, t, n) != f.model.fires(next, s, t, n);
        for (std::size_t c = 0; c < 2; ++c) {
          const double before = f.model.state(tape, s, t, c, n), after = f.model.state(tape, s, t + 1, c, n);
          if (f.model.fires(step, s, t, n))
            EXPECT_NE(before, after);
          else
            EXPECT_EQ(before, after);
        }
      }
  const double share = static_cast<double>(fired) / (2 * 3 * 144);
  EXPECT_NEAR(share, 0.6, 4 * std::sqrt(0.24 / (2 * 3 * 144)));
  EXPECT_GT(differ, 200u);
  step.mode = Mode::evaluate;
  EXPECT_TRUE(f.model.synchronous(step));
  o.evaluation = logic::EvaluationFiring::random;
  EXPECT_FALSE(Automaton<double>(o).synchronous(step));
}

// Whether a cell fires is first asked of 32 bits of its number; all 53 decide when these are a tie.
TEST(Automaton, CellsFireByAllBitsOfTheirNumber) {
  AutomatonOptions o = small_automaton(4, 5, 1);
  const std::size_t cell = 7;
  const Step step{.mode = Mode::train, .seed = 5, .epoch = 2, .index = 1};
  const double number = RandomStream(5, RandomUse::fire, 2, 1 << 16).uniform(cell);
  for (const bool fires : {false, true}) {
    o.fire_probability = fires ? std::nextafter(number, 1.0) : number;
    LogicFixture<Automaton<double>> f(Automaton<double>(o), 1);
    const Exec ex({.threads = 1});
    auto tape = f.model.make_tape(ex, {.batch = 1});
    f.model.forward(ex, step, f.arrays(), f.rows(), tape, f.y_view());
    EXPECT_EQ(f.model.fires(step, 0, 0, cell), fires);
    EXPECT_EQ(f.model.state(tape, 0, 0, 0, cell) != f.model.state(tape, 0, 1, 0, cell), fires);
  }
}

TEST(Automaton, TheSameArraysRunOnAnotherGrid) {
  LogicFixture<Automaton<double>> f(Automaton<double>(small_automaton(6, 6, 2)), 1);
  const Automaton<double> wide = f.model.with_grid(6, 12, 2);
  EXPECT_EQ(wide.parameters().flat_size(), f.parameters.size());
  EXPECT_EQ(wide.buffers().flat_size(), f.buffers.size());
  // A periodic grid that holds the same picture twice shows the same result twice.
  std::vector<double> x(wide.input_width()), y(80);
  for (std::size_t c = 0; c < 2; ++c)
    for (std::size_t row = 0; row < 6; ++row)
      for (std::size_t column = 0; column < 12; ++column)
        x[(c * 6 + row) * 12 + column] = f.x[(c * 6 + row) * 6 + column % 6];
  const Exec ex({.threads = 1});
  RowBatch<double> batch;
  batch.size = 1, batch.x = View<const double, 2>(x.data(), {1, x.size()});
  auto tape = wide.make_tape(ex, {.batch = 1, .backward = false});
  wide.forward(ex, {}, f.arrays(), batch, tape, View<double, 2>(y.data(), {1, 72}, {80, 1}));
  f.forward_backward(ex);
  for (std::size_t row = 0; row < 6; ++row)
    for (std::size_t column = 0; column < 12; ++column) EXPECT_EQ(y[row * 12 + column], f.y[row * 6 + column % 6]);
}

TEST(Automaton, StartsWithGateAEverywhere) {
  const Automaton<float> m(small_automaton(4, 4, 1));
  std::vector<float> p(m.parameters().flat_size()), b(m.buffers().flat_size());
  m.initialise(3, p, b);
  for (const Slice& slice : m.parameters())
    for (std::size_t at = slice.offset; at < slice.end(); ++at)
      EXPECT_EQ(p[at], (at - slice.offset) % 16 == 3 ? 10.0f : 0.0f);
  EXPECT_TRUE(m.derive(b).ok());
  b[m.buffers()[m.buffers().find("update.1.wires")].offset + 3] = 8.0f;
  const auto damaged = m.derive(b);
  ASSERT_FALSE(damaged.ok());
  EXPECT_THAT(damaged.error().message, HasSubstr("update.1.wires: gate 1 reads input 8"));
}

TEST(Automaton, RefusesWhatCannotBeBuiltOrRun) {
  const auto message = [](auto&& change) -> std::string {
    AutomatonOptions o = small_automaton(4, 4, 1);
    change(o);
    try {
      Automaton<float>{o};
    } catch (const Exception& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(message([](auto& o) { o.update = {6, 4, 2}; }), HasSubstr("update.0"));
  EXPECT_THAT(message([](auto& o) { o.update = {8, 4}; }), HasSubstr("2 channels"));
  EXPECT_THAT(message([](auto& o) { o.perception = {9, 4}; }), HasSubstr("must have 8"));
  EXPECT_THAT(message([](auto& o) { o.steps = 0; }), HasSubstr("steps"));
  EXPECT_THAT(message([](auto& o) { o.target_channels = 3; }), HasSubstr("target_channels"));
  EXPECT_THAT(message([](auto& o) { o.fire_probability = 0; }), HasSubstr("fire_probability"));
  EXPECT_THAT(message([](auto& o) { o.height = 0; }), HasSubstr("0 rows"));

  LogicFixture<Automaton<float>> f(Automaton<float>(small_automaton(4, 4, 1)), 3);
  const Exec ex({.threads = 1}), two({.threads = 2});
  auto tape = f.model.make_tape(ex, {.batch = 2});
  EXPECT_THROW(f.model.forward(ex, {}, f.arrays(), f.rows(), tape, f.y_view()), Exception);
  auto fresh = f.model.make_tape(ex, {.batch = 3});
  EXPECT_THROW(
      f.model.backward(
          ex,
          {.arrays = f.arrays(), .batch = f.rows(), .tape = fresh, .dl_dy = f.dl_dy_view(), .gradient = f.gradient}),
      Exception);
  EXPECT_THROW(f.model.forward(two, {}, f.arrays(), f.rows(), fresh, f.y_view()), Exception);
  const auto backward = [&](logic::AutomatonTape<float>& with) {
    f.model.backward(
        ex, {.arrays = f.arrays(), .batch = f.rows(), .tape = with, .dl_dy = f.dl_dy_view(), .gradient = f.gradient});
  };
  f.model.forward(ex, {}, f.arrays(), f.rows(), fresh, f.y_view());
  backward(fresh);
  f.buffers[f.model.buffers()[0].offset] = NAN;
  EXPECT_THROW(f.model.forward(ex, {}, f.arrays(), f.rows(), fresh, f.y_view()), Exception);
  EXPECT_THROW(backward(fresh), Exception) << "after a forward pass that failed";
}

}  // namespace
}  // namespace gradloom
