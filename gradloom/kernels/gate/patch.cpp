#include "gradloom/kernels/gate/patch.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/gate/fast.h"

namespace gradloom::kernels::gate {
namespace {

template <class T>
void read_rows(Variant variant, const GridShape& grid, const TileCells& cells, std::span<const std::size_t> offsets,
               const T* state, T* rows) {
  GRADLOOM_CHOOSE(variant, read_rows<T>)(grid, cells, offsets, state, rows);
}

// At most L numbers: pieces of known sizes, which may overlap, take a few instructions where a call would take many.
template <std::size_t size, class T>
void copy_ends(T* to, const T* from, std::size_t count) {
  std::memcpy(to, from, size * sizeof(T));
  std::memcpy(to + count - size, from + count - size, size * sizeof(T));
}
template <class T>
void copy_few(T* to, const T* from, std::size_t count) {
  if (count >= 8)
    copy_ends<8>(to, from, count);
  else if (count >= 4)
    copy_ends<4>(to, from, count);
  else if (count >= 2)
    copy_ends<2>(to, from, count);
  else
    *to = *from;
}

}  // namespace

std::array<std::size_t, kPatch> GridShape::neighbours() const {
  std::array<std::size_t, kPatch> offsets;
  for (std::size_t p = 0; p < kPatch; ++p) offsets[p] = (p / 3) * row_step() + p % 3 - row_step() - 1;
  return offsets;
}

template <class T>
void close_frame(const GridShape& grid, T* sample) {
  if (grid.border == Border::zero) return;
  const std::size_t height = grid.height, width = grid.width, step = grid.row_step();
  for (std::size_t y = 1; y <= height; ++y) {
    T* row = sample + y * step;
    for (std::size_t c = 0; c < grid.channels; ++c, row += grid.channel_step())
      row[0] = row[width], row[width + 1] = row[1];
  }
  std::copy_n(sample + height * step, step, sample);
  std::copy_n(sample + step, step, sample + (height + 1) * step);
}

TileCells find_cells(const GridShape& grid, const std::uint32_t* numbers, std::size_t count) {
  TileCells cells;
  cells.count = count;
  const std::size_t height = grid.height, width = grid.width, per_sample = grid.cells(), in_sample = grid.sample_step();
  std::size_t sample = 0, row = 0, column = 0;
  for (std::size_t l = 0; l < count; ++l) {
    column += numbers[l] - (l > 0 ? numbers[l - 1] : 0);
    if (column >= 2 * width) {
      sample = numbers[l] / per_sample;
      row = numbers[l] % per_sample / width, column = numbers[l] % width;
    } else if (column >= width) {
      column -= width;
      if (++row == height) row = 0, ++sample;
    }
    cells.sample[l] = static_cast<std::uint32_t>(sample);
    cells.row[l] = static_cast<std::uint32_t>(row);
    cells.column[l] = static_cast<std::uint32_t>(column);
    cells.at[l] = sample * in_sample + grid.at(row, column);
  }
  return cells;
}

template <class T>
void read_patches(Variant variant, const GridShape& grid, const TileCells& cells, const T* state, T* patch) {
  read_rows(variant, grid, cells, grid.neighbours(), state, patch);
}

template <class T>
void read_centres(Variant variant, const GridShape& grid, const TileCells& cells, const T* state, T* rows) {
  const std::size_t here[] = {0};
  read_rows(variant, grid, cells, here, state, rows);
}

template <class T>
void write_centres(const GridShape& grid, const TileCells& cells, const T* rows, T* state) {
  const std::size_t step = grid.channel_step();
  for (std::size_t l = 0; l < cells.count;) {
    std::size_t end = l + 1;  // of cells that lie behind each other
    while (end < cells.count && cells.at[end] == cells.at[end - 1] + 1) ++end;
    for (std::size_t c = 0; c < grid.channels; ++c)
      copy_few(state + c * step + cells.at[l], rows + c * kTile + l, end - l);
    l = end;
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
  const auto sum = [&](std::size_t before, std::size_t x, std::size_t after) {
    return T(0) + a[after] + b[x] + c[before] + d[after] + e[x] + f[before] + g[after] + h[x] + i[before];
  };
  for (std::size_t x = 1; x + 1 < width; ++x) dl_dx[x] = sum(x - 1, x, x + 1);
  if (wraps)
    dl_dx[0] = sum(width - 1, 0, 1), dl_dx[width - 1] = sum(width - 2, width - 1, 0);
  else
    one(0), one(width - 1);
}

GRADLOOM_INSTANTIATE(close_frame);
GRADLOOM_INSTANTIATE(read_patches);
GRADLOOM_INSTANTIATE(read_centres);
GRADLOOM_INSTANTIATE(write_centres);
GRADLOOM_INSTANTIATE(gather_row);

}  // namespace gradloom::kernels::gate
