// Patches of cells, and gradients of patches, against their definition: cell by cell, neighbour by neighbour.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/kernels/gate/patch.h"
#include "gradloom/kernels/simd_targets.h"

namespace gradloom::kernels::gate {
namespace {

struct Size {
  std::size_t height, width, samples, channels = 2;
};

std::vector<Size> sizes() {
  return {{1, 1, 3},  {1, 2, 20}, {2, 1, 9},  {2, 2, 5},  {3, 3, 20},   {5, 5, 3},    {3, 15, 1},
          {2, 16, 2}, {3, 17, 1}, {3, 18, 2}, {4, 40, 1}, {9, 1, 3, 1}, {7, 2, 2, 1}, {5, 3, 2, 3}};
}

GridShape shape_of(const Size& size, Border border) { return {size.height, size.width, border, size.channels}; }

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

// Numbers in cells, frames that are closed, and NaN behind them: copies may touch it, results may not.
template <class T>
std::vector<T> random_state(const GridShape& g, std::size_t samples) {
  const RandomStream random(3, RandomUse::check);
  std::vector<T> state(samples * g.sample_step(), NAN);
  for (std::size_t n = 0; n < samples; ++n) {
    T* sample = state.data() + n * g.sample_step();
    if (g.border == Border::zero) std::fill_n(sample, (g.height + 2) * g.row_step(), T(0));
    for (std::size_t i = 0; i < g.channels * g.cells(); ++i) {
      const std::size_t cell = i % g.cells(),
                        at = i / g.cells() * g.channel_step() + g.at(cell / g.width, cell % g.width);
      sample[at] = static_cast<T>(random.normal(static_cast<std::uint32_t>(n * g.sample_step() + at)));
    }
    close_frame(g, sample);
  }
  return state;
}

// Lists of at most 16 cells of a batch: neighbours, the last ones, every third, few and far between, at random, none.
std::vector<std::vector<std::uint32_t>> lists(std::size_t cells) {
  std::vector<std::vector<std::uint32_t>> all{{}};
  for (std::size_t first = 0; first < cells; first += 7)
    for (const std::size_t stride : {1u, 3u, 11u}) {
      std::vector<std::uint32_t> list;
      for (std::size_t n = first; n < cells && list.size() < kTile; n += stride)
        list.push_back(static_cast<std::uint32_t>(n));
      all.push_back(std::move(list));
    }
  const RandomStream random(5, RandomUse::check);
  for (std::uint32_t n = 0, at = 0; n < 20; ++n) {
    std::vector<std::uint32_t> list;
    for (std::uint32_t cell = random.below(at++, static_cast<std::uint32_t>(cells));
         cell < cells && list.size() < kTile; ++cell)
      if (random.uniform(at++) < 0.6) list.push_back(cell);
    all.push_back(std::move(list));
  }
  return all;
}

template <class T>
void expect_patches(Variant variant) {
  for (const Size& size : sizes())
    for (const Border border : {Border::periodic, Border::zero}) {
      const GridShape g = shape_of(size, border);
      const std::vector<T> state = random_state<T>(g, size.samples);
      for (const auto& list : lists(size.samples * g.cells())) {
        const TileCells found = find_cells(g, list.data(), list.size());
        // One row more is allowed to change, no number after it.
        std::vector<T> patch((g.channels * kPatch + 1) * kTile + 1, T(7)), rows((g.channels + 1) * kTile + 1, T(7));
        read_patches(variant, g, found, state.data(), patch.data());
        read_centres(variant, g, found, state.data(), rows.data());
        EXPECT_EQ(patch.back(), T(7));
        EXPECT_EQ(rows.back(), T(7));
        std::vector<T> written(state.size(), T(5));
        write_centres(g, found, rows.data(), written.data());
        std::size_t changed = 0;
        for (std::size_t l = 0; l < kTile; ++l)
          for (std::size_t c = 0; c < g.channels; ++c) {
            if (l >= list.size()) {
              EXPECT_EQ(rows[c * kTile + l], T(0));
              for (std::size_t p = 0; p < kPatch; ++p) EXPECT_EQ(patch[(c * kPatch + p) * kTile + l], T(0));
              continue;
            }
            const std::size_t first = list[l] / g.cells() * g.sample_step() + c * g.channel_step();
            const std::size_t cell = list[l] % g.cells();
            const auto at = [&](std::size_t n) { return first + g.at(n / g.width, n % g.width); };
            for (std::size_t p = 0; p < kPatch; ++p) {
              const auto from = neighbour(g, cell, p);
              EXPECT_EQ(patch[(c * kPatch + p) * kTile + l], from ? state[at(*from)] : T(0))
                  << size.height << "x" << size.width << " lane " << l << " position " << p;
            }
            EXPECT_EQ(rows[c * kTile + l], state[at(cell)]);
            EXPECT_EQ(written[at(cell)], state[at(cell)]);
          }
        for (const T v : written) changed += v != T(5);
        EXPECT_EQ(changed, list.size() * g.channels);
        if (::testing::Test::HasFailure()) return;
      }
    }
}

TEST(GatePatches, HoldTheNeighboursOfTheirCellsAndNothingElse) {
  expect_patches<float>(Variant::reference);
  expect_patches<double>(Variant::reference);
  for (const std::string& target : simd_targets()) {
    SCOPED_TRACE(target);
    const ForceSimdTarget force(target);
    expect_patches<float>(Variant::fast);
    expect_patches<double>(Variant::fast);
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
