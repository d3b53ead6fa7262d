#include "gradloom/kernels/gate/patch.h"

#include <cstring>
#include <iterator>

namespace gradloom::kernels::gate {
namespace {

using Pieces = PatchIndex::Pieces;

Pieces find_pieces(const std::size_t* at) {
  Pieces pieces;
  for (std::size_t l = 0; l < kTile;) {
    std::size_t end = l + 1;
    while (end < kTile && at[end] == at[end - 1] + 1) ++end;
    const auto lane = static_cast<std::uint8_t>(l);
    if (end - l > 1) {
      if (pieces.starts == std::size(pieces.start)) return {};
      pieces.start[pieces.starts++] = lane;
    } else {
      if (pieces.singles == std::size(pieces.single)) return {};
      pieces.single[pieces.singles++] = lane;
    }
    l = end;
  }
  return pieces;
}

}  // namespace

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
  for (std::size_t p = 0; p < kPatch; ++p) index->pieces[p] = count == kTile ? find_pieces(index->at[p]) : Pieces{};
  const std::size_t* centre = index->at[4];
  index->centres = count == kTile;
  for (std::size_t l = 1; l < kTile && index->centres; ++l) index->centres = centre[l] == centre[0] + l;
}

template <class T>
void read_patches(const GridShape& grid, const PatchIndex& index, const T* state, T* patch) {
  for (std::size_t c = 0; c < grid.channels; ++c) {
    const T* channel = state + c * grid.plane;
    for (std::size_t p = 0; p < kPatch; ++p) {
      T* to = patch + (c * kPatch + p) * kTile;
      const std::size_t* at = index.at[p];
      if (const Pieces& pieces = index.pieces[p]; pieces.starts > 0) {
        // A known number of bytes: a few instructions instead of a call. What is too much is overwritten by what
        // follows.
        for (std::size_t n = 0; n < pieces.starts; ++n)
          std::memcpy(to + pieces.start[n], channel + at[pieces.start[n]], kTile * sizeof(T));
        for (std::size_t n = 0; n < pieces.singles; ++n) to[pieces.single[n]] = channel[at[pieces.single[n]]];
      } else {
        for (std::size_t l = 0; l < kTile; ++l) to[l] = channel[at[l]];
      }
    }
  }
}

template <class T>
void read_centres(const GridShape& grid, const PatchIndex& index, const T* state, T* rows) {
  const std::size_t* at = index.at[4];
  for (std::size_t c = 0; c < grid.channels; ++c, state += grid.plane, rows += kTile) {
    if (index.centres)
      std::memcpy(rows, state + at[0], kTile * sizeof(T));
    else
      for (std::size_t l = 0; l < kTile; ++l) rows[l] = l < index.count ? state[at[l]] : T(0);
  }
}

template <class T>
void write_centres(const GridShape& grid, const PatchIndex& index, const T* rows, T* state) {
  const std::size_t* at = index.at[4];
  for (std::size_t c = 0; c < grid.channels; ++c, state += grid.plane, rows += kTile) {
    if (index.centres)
      std::memcpy(state + at[0], rows, kTile * sizeof(T));
    else
      for (std::size_t l = 0; l < index.count; ++l) state[at[l]] = rows[l];
  }
}

template <class T>
void gather_row(const GridShape& grid, const PatchPlanes& shape, const T* planes, std::size_t row,
                T* __restrict dl_dx) {
  const std::size_t height = grid.height, width = grid.width;
  const bool wraps = grid.border == Border::periodic;
  // For every position, the row whose cells have this row there; none beyond a zero border.
  const T* from[kPatch];
  bool inner = true;
  for (std::size_t p = 0; p < kPatch; ++p) {
    const bool below = p / 3 == 0, above = p / 3 == 2;
    const std::size_t other = below ? row + 1 == height ? 0 : row + 1 : above ? row == 0 ? height - 1 : row - 1 : row;
    const bool exists = wraps || !((below && row + 1 == height) || (above && row == 0));
    from[p] = exists ? planes + (p * shape.slots + shape.slot(other, height)) * width : nullptr;
    inner = inner && exists;
  }
  const auto one = [&](std::size_t x) {
    T sum(0);
    for (std::size_t p = 0; p < kPatch; ++p) {
      if (!from[p]) continue;
      const bool right = p % 3 == 0, left = p % 3 == 2;
      if (!wraps && ((right && x + 1 == width) || (left && x == 0))) continue;
      sum = sum + from[p][right ? x + 1 == width ? 0 : x + 1 : left ? x == 0 ? width - 1 : x - 1 : x];
    }
    dl_dx[x] = sum;
  };
  if (!inner || width < 3) {
    for (std::size_t x = 0; x < width; ++x) one(x);
    return;
  }
  const T *a = from[0], *b = from[1], *c = from[2], *d = from[3], *e = from[4], *f = from[5], *g = from[6],
          *h = from[7], *i = from[8];
  one(0);
  for (std::size_t x = 1; x + 1 < width; ++x)
    dl_dx[x] = T(0) + a[x + 1] + b[x] + c[x - 1] + d[x + 1] + e[x] + f[x - 1] + g[x + 1] + h[x] + i[x - 1];
  one(width - 1);
}

#define GRADLOOM_INSTANTIATE(T)                                                      \
  template void read_patches<T>(const GridShape&, const PatchIndex&, const T*, T*);  \
  template void read_centres<T>(const GridShape&, const PatchIndex&, const T*, T*);  \
  template void write_centres<T>(const GridShape&, const PatchIndex&, const T*, T*); \
  template void gather_row<T>(const GridShape&, const PatchPlanes&, const T*, std::size_t, T*);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::kernels::gate
