// The automaton's gradient against central differences and dual numbers, in double, away from the initial logits.
#include <gmock/gmock.h>

#include "gradloom/models/logic/dual.h"
#include "gradloom/train/gradient_check.h"
#include "tests/models/logic_support.h"

namespace gradloom {
namespace {

using logic::Automaton;
using logic::AutomatonOptions;
using logic::Boundary;
using test::LogicFixture;
using test::Logits;
using test::small_automaton;

// At the initial logits plus noise and at noise alone, by central differences and by dual numbers.
void expect_right(const AutomatonOptions& options, std::size_t batch, std::size_t dual_every = 7) {
  for (const Logits logits : {Logits::initial, Logits::mixed}) {
    LogicFixture<Automaton<double>> f(Automaton<double>(options), batch, logits);
    const Exec ex({.threads = 1});
    const auto report = check_gradient(ex, f.model, f.rows(), f.parameters.span(), f.buffers.span(),
                                       {.noise = 0.0, .max_elements = 400});
    EXPECT_TRUE(report.passed) << report.reason;
    EXPECT_GT(report.checked, logits == Logits::mixed ? 100u : 20u);

    f.forward_backward(ex);
    std::size_t counter = 0;
    // Rounding: a part is relative to the slice, a part to the terms that cancel, which are as large as any gradient.
    double whole = 0.0;
    for (const double g : f.gradient.span()) whole = std::max(whole, std::abs(g));
    for (const Slice& slice : f.model.parameters()) {
      double largest = 0.0;
      for_each_logical(slice, [&](std::size_t i) { largest = std::max(largest, std::abs(f.gradient[i])); });
      EXPECT_GT(largest, 0.0) << slice.name;
      for_each_logical(slice, [&](std::size_t i) {
        if (counter++ % dual_every != 0) return;
        const double exact = logic::dual_derivative(f.model, {}, f.arrays(), f.rows(), f.dl_dy_view(), i);
        EXPECT_NEAR(f.gradient[i], exact, 1e-12 * largest + 1e-15 * whole) << slice.name << " " << i - slice.offset;
      });
    }
  }
}

class AutomatonGradient : public ::testing::TestWithParam<std::tuple<std::pair<int, int>, Boundary>> {};

TEST_P(AutomatonGradient, ReachesTheNeighboursOnSmallGrids) {
  const auto [size, boundary] = GetParam();
  AutomatonOptions o = small_automaton(static_cast<std::size_t>(size.first), static_cast<std::size_t>(size.second), 3);
  o.boundary = boundary;
  expect_right(o, 2);
}

INSTANTIATE_TEST_SUITE_P(Sizes, AutomatonGradient,
                         ::testing::Combine(::testing::Values(std::pair(1, 1), std::pair(1, 5), std::pair(5, 1),
                                                              std::pair(2, 2), std::pair(3, 3), std::pair(4, 5)),
                                            ::testing::Values(Boundary::periodic, Boundary::zero)));

TEST(AutomatonGradients, AreRightWhenOnlySomeCellsFire) {
  AutomatonOptions o = small_automaton(4, 5, 4);
  o.fire_probability = 0.6;
  for (const Boundary boundary : {Boundary::periodic, Boundary::zero}) {
    o.boundary = boundary;
    expect_right(o, 3);
  }
}

TEST(AutomatonGradients, AreRightWithNoiseOnTheLogits) {
  AutomatonOptions o = small_automaton(3, 4, 3);
  o.gate_noise = 0.5;
  LogicFixture<Automaton<double>> f(Automaton<double>(o), 2);
  const Exec ex({.threads = 1});
  const auto report =
      check_gradient(ex, f.model, f.rows(), f.parameters.span(), f.buffers.span(), {.noise = 0.0, .max_elements = 400});
  EXPECT_TRUE(report.passed) << report.reason;
  EXPECT_GT(report.checked, 100u);
  // Noise is for training alone, is new in every step, and grows where a ramp says so.
  const auto value = [&](AutomatonOptions options, Step step) {
    LogicFixture<Automaton<double>> g(Automaton<double>(options), 2);
    g.forward_backward(ex, step);
    return g.y[0];
  };
  AutomatonOptions quiet = o, slow = o;
  quiet.gate_noise = 0.0;
  slow.noise_ramp = 1000;
  EXPECT_EQ(value(o, {.mode = Mode::evaluate}), value(quiet, {}));
  EXPECT_NE(value(o, {}), value(quiet, {}));
  EXPECT_NE(value(o, {.epoch = 1}), value(o, {.epoch = 2}));
  EXPECT_LT(std::abs(value(slow, {}) - value(quiet, {})), std::abs(value(o, {}) - value(quiet, {})));
  AutomatonOptions again = slow, first = o;
  again.noise_again = 7;
  first.gate_noise = o.gate_noise / 1000;
  EXPECT_EQ(value(again, {.epoch = 14}), value(first, {.epoch = 14}));
}

TEST(AutomatonGradients, AreRightAroundDeadCells) {
  for (const double fire : {1.0, 0.6})
    for (const Boundary boundary : {Boundary::periodic, Boundary::zero}) {
      AutomatonOptions o = small_automaton(4, 5, 4);
      o.fire_probability = fire;
      o.boundary = boundary;
      o.masked = logic::MaskedCells::dead;
      LogicFixture<Automaton<double>> f(Automaton<double>(o), 2);
      std::vector<double> mask(2 * f.model.output_width(), 1.0);
      for (const std::size_t dead : {6u, 7u, 11u, 12u}) mask[dead] = 0.0;
      RowBatch<double> rows = f.rows();
      rows.mask = View<const double, 2>(mask.data(), {2, f.model.output_width()});
      const Exec ex({.threads = 1});
      const auto report =
          check_gradient(ex, f.model, rows, f.parameters.span(), f.buffers.span(), {.noise = 0.0, .max_elements = 400});
      EXPECT_TRUE(report.passed) << report.reason;
      EXPECT_GT(report.checked, 100u);
      auto tape = f.model.make_tape(ex, {.batch = 2});
      f.model.forward(ex, {}, f.arrays(), rows, tape, f.y_view());
      for (std::size_t t = 0; t <= 4; ++t)
        for (std::size_t c = 0; c < 2; ++c) EXPECT_EQ(f.model.state(tape, 0, t, c, 7), 0.0);
    }
}

TEST(AutomatonGradients, HaveTheSameBitsOnThreadsAndInTheReferenceWithNoiseAndDeadCells) {
  AutomatonOptions o = small_automaton(9, 11, 3);
  o.gate_noise = 0.3;
  o.masked = logic::MaskedCells::dead;
  std::vector<float> expected;
  for (const ExecOptions& options : {ExecOptions{.threads = 1}, ExecOptions{.threads = 3},
                                     ExecOptions{.threads = 1, .variant = Variant::reference}}) {
    LogicFixture<Automaton<float>> f(Automaton<float>(o), 3);
    std::vector<float> mask(3 * f.model.output_width(), 1.0f);
    for (std::size_t i = 20; i < 40; ++i) mask[i] = 0.0f;
    RowBatch<float> rows = f.rows();
    rows.mask = View<const float, 2>(mask.data(), {3, f.model.output_width()});
    const Exec ex(options);
    auto tape = f.model.make_tape(ex, {.batch = 3});
    f.model.forward(ex, {}, f.arrays(), rows, tape, f.y_view());
    f.model.backward(
        ex, {.arrays = f.arrays(), .batch = rows, .tape = tape, .dl_dy = f.dl_dy_view(), .gradient = f.gradient});
    const std::vector<float> bits(f.gradient.data(), f.gradient.data() + f.gradient.size());
    if (expected.empty()) expected = bits;
    EXPECT_EQ(bits, expected) << options.threads;
  }
}

TEST(AutomatonGradients, AreRightWithOneLayerOfEachKind) {
  AutomatonOptions o = small_automaton(3, 3, 2);
  o.kernels = 1;
  o.perception = {8};
  o.wires = logic::WireKind::random;
  o.update = {2};
  expect_right(o, 2, 1);
}

TEST(AutomatonGradients, AreRightWithPerceptionOfOneLayerAndManyChannels) {
  AutomatonOptions o = small_automaton(3, 4, 2);
  o.channels = 3, o.kernels = 1;
  o.perception = {8};
  o.update = {14, 7, 4, 3};
  expect_right(o, 2);
}

TEST(AutomatonGradients, AreRightWithRandomWiresAndAllChannelsAsTarget) {
  AutomatonOptions o = small_automaton(3, 4, 2);
  o.wires = logic::WireKind::random;
  o.update = {5, 11, 2};
  o.target_channels = 2;
  expect_right(o, 2);
}

// A backward pass that is wrong on purpose.
struct Broken {
  using Scalar = double;
  using Batch = RowBatch<double>;
  using Tape = logic::AutomatonTape<double>;
  enum class Defect { none, sign, factor, swapped, one_channel_missing };

  Automaton<double> model;
  Defect defect;

  const Slices& parameters() const { return model.parameters(); }
  const Slices& buffers() const { return model.buffers(); }
  std::size_t output_width() const { return model.output_width(); }
  void initialise(std::uint64_t s, std::span<double> p, std::span<double> b) const { model.initialise(s, p, b); }
  Tape make_tape(const Exec& ex, const TapeLimits& l) const { return model.make_tape(ex, l); }
  void forward(const Exec& ex, const Step& step, const ModelArrays<double>& a, const Batch& b, Tape& t,
               View<double, 2> y) const {
    model.forward(ex, step, a, b, t, y);
  }
  void backward(const Exec& ex, const BackwardCall<double, Batch, Tape>& call) const {
    model.backward(ex, call);
    double* g = call.gradient.data();
    const Slice& first = model.parameters()[0];
    double* z = g + first.offset;
    if (defect == Defect::sign) for_each_logical(first, [&](std::size_t i) { g[i] = -g[i]; });
    if (defect == Defect::factor) for_each_logical(first, [&](std::size_t i) { g[i] *= 1.001; });
    if (defect == Defect::swapped) std::swap_ranges(z, z + 16, z + 16);  // two gates of a kernel
    if (defect == Defect::one_channel_missing && !call.dl_dx.empty())
      for (std::size_t s = 0; s < call.batch.size; ++s) std::fill_n(call.dl_dx.row(s), model.cells(), 0.0);
  }
};

TEST(AutomatonGradients, ThatAreWrongAreRejected) {
  AutomatonOptions o = small_automaton(3, 3, 2);
  o.target_channels = 2;
  LogicFixture<Automaton<double>> f(Automaton<double>(o), 2);
  for (const auto defect : {Broken::Defect::none, Broken::Defect::sign, Broken::Defect::factor, Broken::Defect::swapped,
                            Broken::Defect::one_channel_missing}) {
    const Broken broken{Automaton<double>(o), defect};
    const auto report =
        check_gradient(Exec({.threads = 1}), broken, f.rows(), f.parameters.span(), f.buffers.span(), {.noise = 0.0});
    EXPECT_EQ(report.passed, defect == Broken::Defect::none) << static_cast<int>(defect) << " " << report.reason;
  }
}

class ClassifierGradient : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ClassifierGradient, MatchesCentralDifferences) {
  logic::ClassifierOptions o;
  o.inputs = 11, o.layers = {9, 12, 6}, o.classes = 3, o.tau = 2.5;
  LogicFixture<logic::GateClassifier<double>> f(logic::GateClassifier<double>(o), GetParam());
  const auto report =
      check_gradient(Exec({.threads = 1}), f.model, f.rows(), f.parameters.span(), f.buffers.span(), {.noise = 0.0});
  EXPECT_TRUE(report.passed) << report.reason;
  EXPECT_GT(report.checked, 200u);
}

INSTANTIATE_TEST_SUITE_P(Batches, ClassifierGradient, ::testing::Values(1, 5, 16, 37));

}  // namespace
}  // namespace gradloom
