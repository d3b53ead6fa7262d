#include "gradloom/data/grids.h"

#include <gtest/gtest.h>

#include <numeric>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

GridTask life(std::size_t height, std::size_t width) {
  return {.kind = GridTaskKind::life, .height = height, .width = width, .channels = 1, .square = 2, .image = {}};
}

TEST(Grids, ALifeBlinkerTurns) {
  std::vector<std::uint8_t> start(25, 0), turned(25, 0);
  for (std::size_t i : {7u, 12u, 17u}) start[i] = 1;
  for (std::size_t i : {11u, 12u, 13u}) turned[i] = 1;
  EXPECT_EQ(grid_target(life(5, 5), start), turned);
}

TEST(Grids, ARuleSaysWhoIsBornAndWhoSurvives) {
  const auto rule = parse_life_rule("B36/S23");
  ASSERT_TRUE(rule);
  EXPECT_EQ(name_of_rule(*rule), "B36/S23");
  GridTask task = life(5, 5);
  task.rule = patch_table(*rule);
  std::vector<std::uint8_t> start(25, 0);
  for (std::size_t i : {6u, 7u, 8u, 16u, 17u, 18u}) start[i] = 1;  // six neighbours around the middle
  EXPECT_EQ(grid_target(task, start)[12], 1);
  EXPECT_EQ(grid_target(life(5, 5), start)[12], 0);
  EXPECT_EQ(life(5, 5).rule, patch_table(*parse_life_rule("B3/S23")));
}

TEST(Grids, ATableMayHoldAnyRule) {
  // A shift: the next state is that of the left neighbour.
  std::string text = "nw,n,ne,w,c,e,sw,s,se,next\n";
  const auto row = [](unsigned patch, unsigned next) {
    std::string line;
    for (unsigned i = 0; i < 9; ++i) line += std::to_string(patch >> i & 1) + ",";
    return line + std::to_string(next) + "\n";
  };
  for (unsigned patch = 0; patch < 512; ++patch) text += row(patch, patch >> 3 & 1);
  GridTask task = life(3, 4);
  task.rule = parse_patch_table(text, "r.csv").or_throw();
  EXPECT_EQ(grid_target(task, std::vector<std::uint8_t>{0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}),
            (std::vector<std::uint8_t>{0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0}));
  const auto error = [](const std::string& broken) { return parse_patch_table(broken, "r.csv").error().message; };
  EXPECT_NE(error(text + row(3, 0)).find("r.csv: line 514: this patch occurs twice"), std::string::npos);
  EXPECT_NE(error(text.substr(0, text.size() - 20)).find("511 patches"), std::string::npos);
  EXPECT_NE(error("1,2\n").find("2 columns"), std::string::npos);
  EXPECT_NE(error(row(0, 7)).find("column 10 is '7'"), std::string::npos);
}

TEST(Grids, ATestOfLifeCountsThroughAllStates) {
  const GridDataset<float> data(life(3, 3), GridPart::test, 0, 512);
  const RowBatch<float> all = data.all();
  for (unsigned state = 0; state < 512; ++state)
    for (unsigned i = 0; i < 9; ++i) ASSERT_EQ(all.x(state, i), static_cast<float>(state >> i & 1u));
}

TEST(Grids, TheCheckerboardHasItsSquares) {
  const GridDataset<double> data({.height = 4, .width = 6, .square = 2, .image = {}}, GridPart::train, 1, 1);
  const std::vector<double> expected{0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(data.all().target(0, i), expected[i]) << i;
}

TEST(Grids, SamplesDependOnEpochAndRowAlone) {
  const GridDataset<float> data({.image = {}}, GridPart::train, 7, 4);
  auto one = data.make_storage(4), other = data.make_storage(4);
  const std::vector<std::uint32_t> order{2, 0}, single{0};
  const RowBatch<float> a = data.draw(5, order, one), b = data.draw(5, single, other);
  bool differs = false;
  for (std::size_t i = 0; i < data.features(); ++i) {
    EXPECT_EQ(a.x(1, i), b.x(0, i));
    differs = differs || a.x(0, i) != a.x(1, i);
  }
  EXPECT_TRUE(differs);
  const RowBatch<float> later = data.draw(6, single, one);
  bool moved = false;
  for (std::size_t i = 0; i < data.features(); ++i) moved = moved || later.x(0, i) != b.x(0, i);
  EXPECT_TRUE(moved);
}

TEST(Grids, TestSamplesAreNotTrainingSamples) {
  const GridDataset<float> train({.image = {}}, GridPart::train, 7, 1), test({.image = {}}, GridPart::test, 7, 1);
  bool differs = false;
  for (std::size_t i = 0; i < train.features(); ++i) differs = differs || train.all().x(0, i) != test.all().x(0, i);
  EXPECT_TRUE(differs);
}

TEST(Grids, TheCentreCellStartsWithOnesInAllChannels) {
  const GridTask task{.kind = GridTaskKind::picture,
                      .height = 4,
                      .width = 5,
                      .channels = 3,
                      .start = GridStart::centre,
                      .image = std::vector<std::uint8_t>(20, 1)};
  const GridDataset<float> data(task, GridPart::train, 0, 1);
  float sum = 0;
  for (std::size_t i = 0; i < data.features(); ++i) sum += data.all().x(0, i);
  EXPECT_EQ(sum, 3.0f);
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(data.all().x(0, (c * 4 + 2) * 5 + 2), 1.0f);
}

TEST(Grids, RejectsWhatDoesNotFit) {
  GridTask picture{.kind = GridTaskKind::picture, .height = 4, .width = 4, .channels = 2, .image = {}};
  EXPECT_THROW(GridDataset<float>(picture, GridPart::train, 0, 1), Exception);
  picture.image.assign(48, 1);  // three target channels, two channels
  EXPECT_THROW(GridDataset<float>(picture, GridPart::train, 0, 1), Exception);
  EXPECT_THROW(GridDataset<float>({.height = 0, .image = {}}, GridPart::train, 0, 1), Exception);
  const GridDataset<float> data({.image = {}}, GridPart::train, 0, 4);
  auto small = data.make_storage(1);
  const std::vector<std::uint32_t> rows{0, 1};
  EXPECT_THROW(data.draw(0, rows, small), Exception);
}

}  // namespace
}  // namespace gradloom
