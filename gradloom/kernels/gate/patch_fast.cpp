// Reads the numbers around the cells of a tile by vectors. Cells that are near each other lie in one vector of the
// state, in ascending order; a permutation, the same for all rows, closes the gaps between them.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/gate/patch_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include <algorithm>
#include <cstddef>
#include <span>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/gate/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::gate {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// The cells of a tile, cut into groups of which each lies within one vector.
template <class T>
struct Groups {
  static constexpr std::size_t kLanes = hn::MaxLanes(Tag<T>());
  using I = hn::TFromD<hn::RebindToSigned<Tag<T>>>;

  explicit Groups(const TileCells& cells) {
    for (std::size_t l = 0; l < cells.count; ++count) {
      lane[count] = l, from[count] = cells.at[l];
      I* to = index + count * kLanes;
      std::fill_n(to, kLanes, I(0));
      for (; l < cells.count && cells.at[l] - from[count] < kLanes; ++l)
        *to++ = static_cast<I>(cells.at[l] - from[count]);
    }
  }

  std::size_t count = 0;
  std::size_t lane[kTile], from[kTile];  // of each group: its first lane and where its vector begins
  HWY_ALIGN I index[kTile * kLanes];     // of each group: where in that vector its lanes are
};

// All rows, group by group; the permutations of so many groups stay in registers. A group overruns into the next one,
// or into the next row, which is written later.
template <std::size_t count, class T>
HWY_INLINE void read_groups(const GridShape& grid, const Groups<T>& groups, std::span<const std::size_t> offsets,
                            const T* HWY_RESTRICT state, T* HWY_RESTRICT rows) {
  constexpr Tag<T> d;
  constexpr hn::RebindToSigned<Tag<T>> di;
  using Permutation = decltype(hn::IndicesFromVec(d, hn::Zero(di)));
  Permutation permutation[count];
  unroll<count>([&](auto g) GRADLOOM_UNROLLED {
    permutation[g] = hn::IndicesFromVec(d, hn::Load(di, groups.index + g * Groups<T>::kLanes));
  });
  const std::size_t step = grid.channel_step();
  for (std::size_t c = 0; c < grid.channels; ++c, state += step)
    for (const std::size_t offset : offsets) {
      unroll<count>([&](auto g) GRADLOOM_UNROLLED {
        const auto near = hn::LoadU(d, state + (groups.from[g] + offset));
        hn::StoreU(hn::TableLookupLanes(near, permutation[g]), d, rows + groups.lane[g]);
      });
      rows += kTile;
    }
}

template <class T>
void read_rows(const GridShape& grid, const TileCells& cells, std::span<const std::size_t> offsets,
               const T* HWY_RESTRICT state, T* HWY_RESTRICT rows) {
  const Groups<T> groups(cells);
  const std::size_t step = grid.channel_step(), all = grid.channels * offsets.size();
  switch (groups.count) {
    case 2:
      read_groups<2, T>(grid, groups, offsets, state, rows);
      break;
    case 3:
      read_groups<3, T>(grid, groups, offsets, state, rows);
      break;
    case 4:
      read_groups<4, T>(grid, groups, offsets, state, rows);
      break;
    case 5:
      read_groups<5, T>(grid, groups, offsets, state, rows);
      break;
    default: {  // cells that are far from each other, or few; permutations of more groups would not stay in registers
      T* to = rows;
      for (std::size_t c = 0; c < grid.channels; ++c)
        for (const std::size_t offset : offsets) {
          for (std::size_t l = 0; l < cells.count; ++l) to[l] = state[c * step + (cells.at[l] + offset)];
          to += kTile;
        }
    }
  }
  if (cells.count == kTile) return;
  for (std::size_t row = 0; row < all; ++row)
    std::fill(rows + row * kTile + cells.count, rows + (row + 1) * kTile, T(0));
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::gate
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::gate {
GRADLOOM_EXPORT(read_rows);
}  // namespace gradloom::kernels::gate
#endif
