#include "gradloom/kernels/gate/patch.h"

#include <algorithm>

namespace gradloom::kernels::gate {

void find_patches(const GridShape& grid, const std::uint32_t* cells, std::size_t count, PatchIndex* index) {
  const std::size_t height = grid.height, width = grid.width, per_sample = grid.cells();
  const std::size_t nothing = per_sample;  // of the first sample's first plane: a zero
  index->count = count;
  std::size_t sample = 0, row = 0, column = 0;
  for (std::size_t l = 0; l < kTile; ++l) {
    if (l >= count) {
      for (std::size_t p = 0; p < kPatch; ++p) index->at[p][l] = nothing;
      continue;
    }
    if (l > 0 && cells[l] == cells[l - 1] + 1) {
      if (++column == width) column = 0, ++row;
      if (row == height) row = 0, ++sample;
    } else {
      sample = cells[l] / per_sample;
      const std::size_t cell = cells[l] % per_sample;
      row = cell / width, column = cell % width;
    }
    index->sample[l] = static_cast<std::uint32_t>(sample);
    index->row[l] = static_cast<std::uint32_t>(row);
    index->column[l] = static_cast<std::uint32_t>(column);
    // One before, here, one after; -1 as a huge number where there is none.
    const bool wraps = grid.border == Border::periodic;
    constexpr std::size_t none = ~std::size_t{0};
    const std::size_t rows[] = {row > 0 ? row - 1
                                : wraps ? height - 1
                                        : none,
                                row,
                                row + 1 < height ? row + 1
                                : wraps          ? 0
                                                 : none};
    const std::size_t columns[] = {column > 0 ? column - 1
                                   : wraps    ? width - 1
                                              : none,
                                   column,
                                   column + 1 < width ? column + 1
                                   : wraps            ? 0
                                                      : none};
    const std::size_t base = sample * grid.sample();
    for (std::size_t p = 0; p < kPatch; ++p) {
      const std::size_t y = rows[p / 3], x = columns[p % 3];
      index->at[p][l] = y == none || x == none ? nothing : base + y * width + x;
    }
  }
  for (std::size_t p = 0; p < kPatch; ++p) {
    bool adjacent = count == kTile;
    for (std::size_t l = 2; l + 1 < kTile && adjacent; ++l) adjacent = index->at[p][l] == index->at[p][1] + l - 1;
    index->adjacent[p] = adjacent;
  }
}

template <class T>
void read_patches(const GridShape& grid, const PatchIndex& index, const T* state, T* patch) {
  for (std::size_t c = 0; c < grid.channels; ++c) {
    const T* channel = state + c * grid.plane;
    for (std::size_t p = 0; p < kPatch; ++p) {
      T* to = patch + (c * kPatch + p) * kTile;
      const std::size_t* at = index.at[p];
      if (index.adjacent[p]) {
        to[0] = channel[at[0]];
        std::copy_n(channel + at[1], kTile - 2, to + 1);
        to[kTile - 1] = channel[at[kTile - 1]];
      } else {
        for (std::size_t l = 0; l < kTile; ++l) to[l] = channel[at[l]];
      }
    }
  }
}

template <class T>
void gather_row(const GridShape& grid, const PatchPlanes& shape, const T* planes, std::size_t row,
                T* __restrict dl_dx) {
  const std::size_t height = grid.height, width = grid.width;
  const bool wraps = grid.border == Border::periodic;
  std::fill_n(dl_dx, width, T(0));
  for (std::size_t p = 0; p < kPatch; ++p) {
    // The row whose cells have this row at position p.
    std::size_t from = row;
    if (p / 3 == 0) {
      if (row + 1 == height && !wraps) continue;
      from = row + 1 == height ? 0 : row + 1;
    } else if (p / 3 == 2) {
      if (row == 0 && !wraps) continue;
      from = row == 0 ? height - 1 : row - 1;
    }
    const T* plane = planes + (p * shape.slots + shape.slot(from, height)) * width;
    if (p % 3 == 0) {
      for (std::size_t x = 0; x + 1 < width; ++x) dl_dx[x] = dl_dx[x] + plane[x + 1];
      if (wraps) dl_dx[width - 1] = dl_dx[width - 1] + plane[0];
    } else if (p % 3 == 1) {
      for (std::size_t x = 0; x < width; ++x) dl_dx[x] = dl_dx[x] + plane[x];
    } else {
      for (std::size_t x = 1; x < width; ++x) dl_dx[x] = dl_dx[x] + plane[x - 1];
      if (wraps) dl_dx[0] = dl_dx[0] + plane[width - 1];
    }
  }
}

#define GRADLOOM_INSTANTIATE(T)                                                     \
  template void read_patches<T>(const GridShape&, const PatchIndex&, const T*, T*); \
  template void gather_row<T>(const GridShape&, const PatchPlanes&, const T*, std::size_t, T*);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::kernels::gate
