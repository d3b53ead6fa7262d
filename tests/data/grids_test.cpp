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
