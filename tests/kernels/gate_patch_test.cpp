// Patches of cells, and gradients of patches, against their definition: cell by cell, neighbour by neighbour.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/kernels/gate/patch.h"

namespace gradloom::kernels::gate {
namespace {

struct Size {
  std::size_t height, width, samples;
};

std::vector<Size> sizes() {
  return {{1, 1, 3},  {1, 2, 20}, {2, 1, 9},  {2, 2, 5},  {3, 3, 20}, {5, 5, 3},
          {3, 15, 1}, {2, 16, 2}, {3, 17, 1}, {3, 18, 2}, {4, 40, 1}};
}

GridShape shape_of(const Size& size, Border border) {
  GridShape shape{size.height, size.width, border, 0, 2};
  shape.plane = padded_plane(shape.cells());
  return shape;
}

// The cell at position p of the patch of (y, x); none beyond a zero border.
std::optional<std::size_t> neighbour(const GridShape& g, std::size_t cell, std::size_t p) {
  const auto wrap = [&](std::size_t at, std::size_t by, std::size_t size) -> std::optional<std::size_t> {
    const std::size_t moved = at + by;  // one too far, so that it is never negative
    if (g.border == Border::zero && (moved == 0 || moved == size + 1)) return std::nullopt;
    return (moved + size - 1) % size;
  };
  const auto y = wrap(cell / g.width, p / 3, g.height), x = wrap(cell % g.width, p % 3, g.width);
  return y && x ? std::optional(*y * g.width + *x) : std::nullopt;
}

// Numbers in cells, zero right behind them, and NaN after that: copies may touch it, results may not.
std::vector<float> random_state(const GridShape& g, std::size_t samples) {
  const RandomStream random(3, RandomUse::check);
  std::vector<float> state(samples * g.sample(), NAN);
  for (std::size_t plane = 0; plane < samples * g.channels; ++plane)
    for (std::size_t n = 0; n <= g.cells(); ++n)
      state[plane * g.plane + n] =
          n < g.cells() ? static_cast<float>(random.normal(static_cast<std::uint32_t>(plane * g.plane + n))) : 0.0f;
  return state;
}

// Lists of at most 16 cells of a batch: neighbours, the last ones, every third, none.
std::vector<std::vector<std::uint32_t>> lists(std::size_t cells) {
  std::vector<std::vector<std::uint32_t>> all{{}};
  for (std::size_t first = 0; first < cells; first += 7)
    for (const std::size_t stride : {1u, 3u}) {
      std::vector<std::uint32_t> list;
      for (std::size_t n = first; n < cells && list.size() < kTile; n += stride)
        list.push_back(static_cast<std::uint32_t>(n));
      all.push_back(std::move(list));
    }
  return all;
}

TEST(GatePatches, HoldTheNeighboursOfTheirCellsAndNothingElse) {
  for (const Size& size : sizes())
    for (const Border border : {Border::periodic, Border::zero}) {
      const GridShape g = shape_of(size, border);
      const std::vector<float> state = random_state(g, size.samples);
      for (const auto& list : lists(size.samples * g.cells())) {
        PatchIndex index;
        find_patches(g, list.data(), list.size(), &index);
        // One row more is allowed to change, no number after it.
        std::vector<float> patch((g.channels * kPatch + 1) * kTile + 1, 7.0f), rows(g.channels * kTile, 7.0f);
        read_patches(g, index, state.data(), patch.data());
        read_centres(g, index, state.data(), rows.data());
        EXPECT_EQ(patch.back(), 7.0f);
        std::vector<float> written(state.size(), 5.0f);
        write_centres(g, index, rows.data(), written.data());
        std::size_t changed = 0;
        for (std::size_t l = 0; l < kTile; ++l)
          for (std::size_t c = 0; c < g.channels; ++c) {
            if (l >= list.size()) {
              EXPECT_EQ(rows[c * kTile + l], 0.0f);
              continue;
            }
            const std::size_t plane = list[l] / g.cells() * g.sample() + c * g.plane, cell = list[l] % g.cells();
            for (std::size_t p = 0; p < kPatch; ++p) {
              const auto from = neighbour(g, cell, p);
              EXPECT_EQ(patch[(c * kPatch + p) * kTile + l], from ? state[plane + *from] : 0.0f)
                  << size.height << "x" << size.width << " lane " << l << " position " << p;
            }
            EXPECT_EQ(rows[c * kTile + l], state[plane + cell]);
            EXPECT_EQ(written[plane + cell], state[plane + cell]);
          }
        for (const float v : written) changed += v != 5.0f;
        EXPECT_EQ(changed, list.size() * g.channels);
        if (HasFailure()) return;
      }
    }
}

TEST(GatePatches, GradientsOfPatchesReachTheCellsTheyCameFrom) {
  const RandomStream random(4, RandomUse::check);
  for (const Size& size : sizes())
    for (const Border border : {Border::periodic, Border::zero}) {
      const GridShape g = shape_of(size, border);
      std::vector<float> planes(kPatch * g.cells()), expected(g.cells(), 0.0f), actual(g.cells(), NAN);
      for (std::size_t i = 0; i < planes.size(); ++i)
        planes[i] = static_cast<float>(random.normal(static_cast<std::uint32_t>(i)));
      for (std::size_t p = 0; p < kPatch; ++p)
        for (std::size_t cell = 0; cell < g.cells(); ++cell)
          if (const auto to = neighbour(g, cell, p)) expected[*to] = expected[*to] + planes[p * g.cells() + cell];
      for (std::size_t row = 0; row < g.height; ++row)
        gather_row(g, PatchPlanes{g.height}, planes.data(), row, actual.data() + row * g.width);
      EXPECT_EQ(actual, expected) << size.height << "x" << size.width;
    }
}

}  // namespace
}  // namespace gradloom::kernels::gate
