// Patterns: reading, writing, hostile files, and known patterns on the published game of life.
#include "gradloom/circuit/rle.h"

#include <gmock/gmock.h>

#include <map>
#include <sstream>

#include "gradloom/circuit/minimise.h"
#include "gradloom/circuit/run.h"
#include "tests/circuit/support.h"
#include "tests/support/mutate.h"
#include "tests/support/sanitized.h"

namespace gradloom::test {
namespace {

using circuit::Grid;
using testing::HasSubstr;

std::string pattern_message(std::string_view text, std::uint64_t max_cells = 1u << 20) {
  const auto r = circuit::parse_rle(text, max_cells);
  return r ? "" : r.error().message;
}

constexpr const char* kGlider = "#C a glider\n#O somebody\nx = 3, y = 3, rule = B3/S23\nbob$2bo$3o!\n";

TEST(Rle, ReadsAGlider) {
  const circuit::Pattern p = circuit::parse_rle(kGlider).or_throw();
  EXPECT_EQ(p.rule, "B3/S23");
  EXPECT_EQ(p.cells.channels(), 1u);
  const char* rows[] = {".o.", "..o", "ooo"};
  for (std::size_t y = 0; y < 3; ++y)
    for (std::size_t x = 0; x < 3; ++x) EXPECT_EQ(p.cells.get(0, y, x), rows[y][x] == 'o');
  EXPECT_EQ(circuit::to_rle(p.cells, p.rule), "x = 3, y = 3, rule = B3/S23\nbo$2bo$3o!\n");
}

TEST(Rle, ReadsTheSizeOfABoundedGrid) {
  const auto read = [](const std::string& rule) {
    return circuit::parse_rle("x = 3, y = 3, rule = " + rule + "\nbob$2bo$3o!\n").or_throw();
  };
  EXPECT_FALSE(read("B3/S23").bounds);
  const auto torus = read("B3/S23:T80,60");
  EXPECT_EQ(torus.rule, "B3/S23");
  ASSERT_TRUE(torus.bounds);
  EXPECT_EQ(torus.bounds->width, 80u);
  EXPECT_EQ(torus.bounds->height, 60u);
  EXPECT_EQ(torus.bounds->boundary, circuit::Boundary::periodic);
  const auto plane = read("B3/S23:P40");
  ASSERT_TRUE(plane.bounds);
  EXPECT_EQ(plane.bounds->height, 40u);
  EXPECT_EQ(plane.bounds->boundary, circuit::Boundary::zero);
  for (const char* rule : {"B3/S23:", "B3/S23:T", "B3/S23:T0,5", "B3/S23:K5,5", "B3/S23:Tx", "B3/S23:T4,",
                           "B3/S23:T30+5,20", "B3/S23:T5,5x"}) {
    EXPECT_FALSE(read(rule).bounds) << rule;
    EXPECT_EQ(read(rule).rule, "B3/S23") << rule;
  }
  EXPECT_THAT(pattern_message("x = 1, y = 1, rule = B3/S23:T4096,4096\no!"), HasSubstr("too large"));
  EXPECT_THAT(pattern_message("x = 1, y = 1, rule = B3/S23:T99999999,1\no!"), HasSubstr("too large"));
}

TEST(Rle, RoundTripGivesTheSameGrid) {
  for (const std::uint32_t channels : {1u, 2u, 5u, 8u})
    for (const double density : {0.0, 0.1, 0.5, 1.0}) {
      Grid g(channels, 13, 77);
      circuit::fill_random(g, density, channels);
      if (channels > 1) g.set(channels - 1, 0, 0, true);  // or the file has fewer channels
      const std::string text = circuit::to_rle(g);
      const Grid back = std::move(circuit::parse_rle(text).or_throw().cells);
      EXPECT_TRUE(back == g) << text;
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 70u);
    }
  EXPECT_THROW(circuit::to_rle(Grid(9, 2, 2)), Exception);
}

TEST(Rle, NamesWhatIsWrong) {
  EXPECT_THAT(pattern_message(""), HasSubstr("header"));
  EXPECT_THAT(pattern_message("bob$2bo$3o!\n"), HasSubstr("header"));
  EXPECT_THAT(pattern_message("x = 3\nbo!"), HasSubstr("comma"));
  EXPECT_THAT(pattern_message("x = 0, y = 3\n!"), HasSubstr("0 x 3"));
  EXPECT_THAT(pattern_message("x = 99999999999999999999, y = 3\n!"), HasSubstr("at most 18 digits"));
  EXPECT_THAT(pattern_message("x = 999999999999999999, y = 999999999999999999\n!"), HasSubstr("too many"));
  EXPECT_THAT(pattern_message("x = 3, y = 3\n4o!"), HasSubstr("row 0 is longer than the width in the header, 3"));
  EXPECT_THAT(pattern_message("x = 3, y = 3\n2o999999999999999999o!"), HasSubstr("longer"));
  EXPECT_THAT(pattern_message("x = 3, y = 3\n99999999999999999999o!"), HasSubstr("18 digits"));
  EXPECT_THAT(pattern_message("x = 3, y = 3\n0o!"), HasSubstr("a count is 0"));
  EXPECT_THAT(pattern_message("x = 3, y = 3\no4$o!"), HasSubstr("more rows"));
  EXPECT_THAT(pattern_message("x = 3, y = 3\n999999999999999999$!"), HasSubstr("more rows"));
  EXPECT_THAT(pattern_message("x = 3, y = 3\no$o"), HasSubstr("no `!`"));
  EXPECT_THAT(pattern_message("x = 3, y = 3\no2"), HasSubstr("without a letter"));
  EXPECT_THAT(pattern_message("x = 3, y = 3\n\n\no?o!"), HasSubstr("line 4: the character '?'"));
  EXPECT_THAT(pattern_message("x = 3, y = 3\nyX!"), HasSubstr("not a state"));
  EXPECT_EQ(pattern_message("x=3,y=3\r\n  3 o $\r\n#C between\r\n2$!"), "") << "blanks are welcome";
}

TEST(Rle, DamagedFilesAreRefusedOrRead) {
  Grid g(3, 20, 50);
  circuit::fill_random(g, 0.3, 1);
  for (const std::string& text : {std::string(kGlider), circuit::to_rle(g)})
    for (std::uint32_t i = 0; i < 5000; ++i) {
      const auto r = circuit::parse_rle(mutate(text, 5, i), 100000);
      if (!r) continue;
      EXPECT_LE(r->cells.width() * r->cells.height(), 100000u);
    }
}

TEST(Rle, PatternsThatDoNotFitAreNamed) {
  Grid g(1, 4, 4);
  EXPECT_THROW(circuit::place(g, Grid(1, 5, 1), 0, 0), Exception);
  EXPECT_THROW(circuit::place(g, Grid(1, 3, 3), 2, 0), Exception);
  EXPECT_THROW(circuit::place(g, Grid(1, 3, 3), 0, SIZE_MAX), Exception);
  EXPECT_THROW(circuit::place(g, Grid(2, 1, 1), 0, 0), Exception);
  circuit::place_centred(g, circuit::parse_rle("x = 2, y = 2\n2o$2o!").or_throw().cells);
  EXPECT_TRUE(g.get(0, 1, 1) && g.get(0, 2, 2));
  EXPECT_EQ(g.population(0), 4u);
}

struct Expected {
  std::uint64_t generation, population;
  std::int64_t min_row, min_col, max_row, max_col;
};

std::map<std::string, std::vector<Expected>> expected_patterns() {
  std::map<std::string, std::vector<Expected>> all;
  std::istringstream lines(text_of(data_root() / "life/expected.csv"));
  std::string line, cell;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::vector<std::string> words;
    while (std::getline(cells, cell, ',')) words.push_back(cell);
    if (words.size() != 8 || words[1] != "B3/S23" || !words[0].ends_with(".rle")) continue;
    all[words[0]].push_back({std::stoull(words[2]), std::stoull(words[3]), std::stoll(words[4]), std::stoll(words[5]),
                             std::stoll(words[6]), std::stoll(words[7])});
  }
  return all;
}

// Nothing is faster than a cell per generation, so a margin of the generations makes the plane endless.
TEST(Rle, KnownPatternsEvolveOnTheMinimisedCircuitAsTheyShould) {
  GRADLOOM_NEEDS_DATA();
  circuit::CellRule rule = published_life();
  rule.circuit = circuit::minimise(rule.circuit, {.moves = 500}).circuit;
  rule.boundary = circuit::Boundary::zero;
  const Exec ex({1, Variant::fast});
  const auto patterns = expected_patterns();
  EXPECT_GE(patterns.size(), 26u);
  for (auto [file, rows] : patterns) {
    if (kSanitized) std::erase_if(rows, [](const Expected& e) { return e.generation > 100; });
    const circuit::Pattern p = circuit::parse_rle(text_of(data_root() / "life" / file)).or_throw();
    const std::size_t margin = rows.back().generation + 2;
    Grid start(1, p.cells.height() + 2 * margin, p.cells.width() + 2 * margin);
    circuit::place(start, p.cells, margin, margin);
    circuit::Runner runner(ex, rule, std::move(start));
    for (const Expected& e : rows) {
      runner.step(e.generation - runner.steps());
      const Grid& g = runner.grid();
      EXPECT_EQ(g.population(0), e.population) << file << " at " << e.generation;
      std::int64_t top = INT64_MAX, left = INT64_MAX, bottom = INT64_MIN, right = INT64_MIN;
      const auto offset = static_cast<std::int64_t>(margin);
      for (std::size_t y = 0; y < g.height(); ++y)
        for (std::size_t x = 0; x < g.width(); ++x) {
          if (g.row(0, y)[x / 64] == 0) {
            x |= 63;
            continue;
          }
          if (!g.get(0, y, x)) continue;
          const std::int64_t r = static_cast<std::int64_t>(y) - offset, c = static_cast<std::int64_t>(x) - offset;
          top = std::min(top, r);
          bottom = std::max(bottom, r);
          left = std::min(left, c);
          right = std::max(right, c);
        }
      EXPECT_EQ(std::tuple(top, left, bottom, right), std::tuple(e.min_row, e.min_col, e.max_row, e.max_col))
          << file << " at " << e.generation;
    }
  }
}

}  // namespace
}  // namespace gradloom::test
