// Bit-parallel runs give the bits of the plain definition.
#include "gradloom/circuit/run.h"

#include <gtest/gtest.h>

#include "gradloom/base/error.h"
#include "gradloom/circuit/simplify.h"
#include "gradloom/kernels/simd_targets.h"
#include "tests/circuit/support.h"
#include "tests/support/sanitized.h"

namespace gradloom::test {
namespace {

using circuit::Boundary;
using circuit::CellRule;
using circuit::Grid;
using circuit::Runner;

Grid random_grid(std::uint32_t channels, std::size_t height, std::size_t width, std::uint64_t seed,
                 double density = 0.4) {
  Grid g(channels, height, width);
  circuit::fill_random(g, density, seed);
  return g;
}

struct Size {
  std::size_t height, width;
};
constexpr Size kSizes[] = {{1, 1},  {1, 2},  {2, 1},  {2, 2},   {3, 3},   {1, 64},  {1, 65},  {1, 200},   {200, 1},
                           {5, 63}, {5, 64}, {5, 65}, {2, 127}, {2, 128}, {2, 129}, {67, 70}, {130, 300}, {3, 8200}};

void expect_equal_steps(const CellRule& rule, const Grid& start, const ExecOptions& exec, circuit::RunOptions options,
                        int steps) {
  const Exec ex(exec);
  Runner runner(ex, rule, start.copy(), options);
  Grid expected = start.copy();
  for (int s = 0; s < steps; ++s) {
    expected = circuit::step_reference(rule, expected, options, static_cast<std::uint32_t>(s));
    runner.step();
    ASSERT_TRUE(runner.grid() == expected) << start.height() << " x " << start.width() << ", step " << s;
  }
}

TEST(BitRun, EqualsTheDefinitionOnEverySizeAndBoundary) {
  for (const Boundary boundary : {Boundary::periodic, Boundary::zero})
    for (const std::uint32_t channels : {1u, 3u})
      for (const Size& size : kSizes) {
        CellRule rule = random_rule(100 + channels, channels, 40);
        rule.boundary = boundary;
        expect_equal_steps(rule, random_grid(channels, size.height, size.width, 7), {1, Variant::fast}, {}, 4);
      }
}

TEST(BitRun, EqualsTheDefinitionForManyRules) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CellRule rule = random_rule(seed, 1 + seed % 4, 10 + 3 * seed);
    rule.boundary = seed % 2 ? Boundary::zero : Boundary::periodic;
    expect_equal_steps(rule, random_grid(rule.channels, 9, 70 + seed, seed), {1, Variant::fast}, {}, 3);
  }
}

TEST(BitRun, EqualsTheDefinitionOnEveryInstructionSet) {
  for (const std::string& name : kernels::simd_targets()) {
    const kernels::ForceSimdTarget force(name);
    expect_equal_steps(random_rule(3, 2, 80), random_grid(2, 66, 517, 3), {1, Variant::fast}, {}, 3);
  }
  expect_equal_steps(random_rule(3, 2, 80), random_grid(2, 66, 517, 3), {1, Variant::reference}, {}, 3);
}

TEST(BitRun, ThreadsDoNotChangeTheResult) {
  for (const unsigned threads : {2u, 3u, 8u})
    expect_equal_steps(random_rule(5, 2, 60), random_grid(2, 300, 400, 3), {threads, Variant::fast}, {}, 3);
}

TEST(BitRun, AsynchronousModeEqualsTheDefinition) {
  for (const double fire : {0.0, 0.6, 1.0})
    for (const Size& size : kSizes)
      if (size.height * size.width < 10000)
        expect_equal_steps(random_rule(8, 2, 50), random_grid(2, size.height, size.width, 3), {2, Variant::fast},
                           {fire, 12}, 3);
}

// Row 2^26 of a grid of 64 columns begins with cell 2^32.
TEST(BitRun, CellsBeyondFourBillionHaveRandomNumbersOfTheirOwn) {
  const circuit::RowsOf around{.first = (std::size_t{1} << 26) - 2, .rows = std::size_t{1} << 27};
  Grid cells(1, 4, 64), first_rows(1, 2, 64);
  circuit::fill_random(cells, 0.5, 9, around);
  circuit::fill_random(first_rows, 0.5, 9);
  EXPECT_NE(cells.row(0, 2)[0], first_rows.row(0, 0)[0]);
  EXPECT_NE(cells.row(0, 2)[0], 0u);
  expect_equal_steps(random_rule(8, 1, 50), cells, {1, Variant::fast}, {0.6, 12, {}, around}, 3);
  Grid across(1, 3, 65);  // a word of cells in both pieces
  const circuit::RowsOf strip{.first = (std::size_t{1} << 32) / 65 - 1, .rows = std::size_t{1} << 27};
  circuit::fill_random(across, 0.5, 9, strip);
  expect_equal_steps(random_rule(8, 1, 50), across, {1, Variant::fast}, {0.6, 12, {}, strip}, 3);
}

TEST(BitRun, FiresAboutAsOftenAsAsked) {
  // A rule that sets every cell.
  const CellRule rule{1, Boundary::zero, {9, {{circuit::Op::always_true, 0, 0}}, {9}}};
  const Exec ex({1, Variant::fast});
  Runner runner(ex, rule, Grid(1, 500, 500), {0.6, 3});
  runner.step();
  EXPECT_NEAR(static_cast<double>(runner.grid().population(0)), 150000.0, 5 * 245.0);  // five standard deviations
}

TEST(BitRun, SkipsOnlyWhatStandsStill) {
  GRADLOOM_NEEDS_DATA();
  // A glider crosses tiles that sleep, at both kinds of edges.
  CellRule rule = published_life();
  const std::size_t steps = kSanitized ? 300 : 1200;
  for (const Boundary boundary : {Boundary::periodic, Boundary::zero}) {
    rule.boundary = boundary;
    Grid start(1, 450, 150);
    for (const auto& [y, x] : {std::pair{0, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}})
      start.set(0, static_cast<std::size_t>(y) + 300, static_cast<std::size_t>(x) + 60, true);
    const Exec ex({1, Variant::fast});
    Runner runner(ex, rule, start.copy()), restless(ex, rule, start.copy());
    for (std::size_t s = 0; s < steps; ++s) {
      runner.step();
      restless.set_grid(restless.grid().copy());  // wakes every tile
      restless.step();
      ASSERT_TRUE(runner.grid() == restless.grid()) << s;
    }
    EXPECT_EQ(restless.tiles_computed(), steps * runner.tiles());
    EXPECT_LT(runner.tiles_computed(), steps * runner.tiles() * 3 / 4) << "of " << runner.tiles() << " tiles";
  }
}

TEST(BitRun, ManyChannelsFit) {
  expect_equal_steps(random_rule(2, 128, 600), random_grid(128, 6, 130, 1), {1, Variant::fast}, {}, 2);
}

TEST(BitRun, SlicedChannelsAgree) {
  const CellRule rule = random_rule(21, 6, 30);
  const std::uint32_t observed[] = {2};
  const circuit::SlicedRule sliced = circuit::slice(rule, observed);
  Grid whole = random_grid(6, 12, 40, 4), part(sliced.rule.channels, 12, 40);
  const auto agree = [&] {
    for (std::uint32_t c = 0; c < 6; ++c)
      for (std::size_t y = 0; y < 12 && sliced.channel_of[c] >= 0; ++y)
        if (*whole.row(c, y) != *part.row(static_cast<std::uint32_t>(sliced.channel_of[c]), y)) return false;
    return true;
  };
  for (std::uint32_t c = 0; c < 6; ++c)
    for (std::size_t y = 0; y < 12 && sliced.channel_of[c] >= 0; ++y)
      *part.row(static_cast<std::uint32_t>(sliced.channel_of[c]), y) = *whole.row(c, y);
  for (int s = 0; s < 5; ++s) {
    whole = circuit::step_reference(rule, whole);
    part = circuit::step_reference(sliced.rule, part);
    EXPECT_TRUE(agree()) << s;
  }
}

TEST(Grid, NamesSizesThatDoNotWork) {
  const auto code = [](std::uint32_t c, std::size_t h, std::size_t w) {
    try {
      const Grid g(c, h, w);
    } catch (const Exception& e) {
      return static_cast<int>(e.code());
    }
    return -1;
  };
  EXPECT_EQ(code(1, 0, 5), static_cast<int>(ErrorCode::invalid_input));
  EXPECT_EQ(code(1, 1u << 17, 1u << 16), static_cast<int>(ErrorCode::invalid_input));
  EXPECT_EQ(code(1, SIZE_MAX, SIZE_MAX), static_cast<int>(ErrorCode::invalid_input));
  EXPECT_EQ(code(1u << 25, 1u << 16, 1u << 16), static_cast<int>(ErrorCode::out_of_memory));
  EXPECT_EQ(code(UINT32_MAX, 1u << 16, 1u << 16), static_cast<int>(ErrorCode::out_of_memory));
  const CellRule rule = random_rule(1, 2, 5);
  const Exec ex({1, Variant::fast});
  EXPECT_THROW(Runner(ex, rule, Grid(1, 4, 4)), Exception);
  EXPECT_THROW(Runner(ex, rule, Grid(2, 4, 4), {1.5, 0}), Exception);
}

}  // namespace
}  // namespace gradloom::test
