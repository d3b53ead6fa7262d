// From grids of cells to patches of a tile, and from gradients of patches back to gradients of cells.
//
// Letters: H, W the grid's height and width; B samples; C channels. Position p of a patch, row-major, is the cell at (y
// + p / 3 - 1, x + p % 3 - 1). Beyond the border a periodic grid goes on at the other side, also where H or W is 1 or 2
// and one cell is several neighbours; a zero border is 0. A plane has a frame of one cell around the grid that holds
// what is beyond, so every neighbour is at the same distance from its cell. Nothing here computes but gather_row:
// additions of single numbers in a fixed order, the same bits everywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gradloom/kernels/gate/gate.h"

namespace gradloom::kernels::gate {

inline constexpr std::size_t kPatch = 9;

enum class Border { periodic, zero };

struct GridShape {
  std::size_t height = 1, width = 1;
  Border border = Border::periodic;
  std::size_t channels = 1;

  std::size_t cells() const { return height * width; }
  // Of a plane: numbers of a row with its frame, and of all rows. L numbers from any of them on are there.
  std::size_t stride() const { return width + 2; }
  std::size_t plane() const { return ((height + 2) * stride() + 2 * kTile - 2) / kTile * kTile; }
  std::size_t sample() const { return channels * plane(); }
  std::size_t at(std::size_t row, std::size_t column) const { return (row + 1) * stride() + column + 1; }
  // From a cell to its neighbours. Some are "negative": huge, and right when added.
  std::array<std::size_t, kPatch> neighbours() const;
};

// Writes the frame of a periodic grid's plane; that of a zero border is 0 and stays 0.
template <class T>
void close_frame(const GridShape& grid, T* plane);

// Up to 16 cells of a batch, where they are and where they lie in the state (B, C, plane).
struct TileCells {
  std::size_t count = 0;  // lanes with a cell
  std::uint32_t sample[kTile], row[kTile], column[kTile];
  std::size_t at[kTile];
};

// Numbers of cells, sample * cells + cell, count up; count <= 16.
TileCells find_cells(const GridShape& grid, const std::uint32_t* cells, std::size_t count);

// patch (C, 9, L), 0 in lanes without a cell, and room for L numbers behind it, which are overwritten.
template <class T>
void read_patches(Variant variant, const GridShape& grid, const TileCells& cells, const T* state, T* patch);

// rows (C, L): the cells themselves, otherwise as above. And back; lanes without a cell are left out.
template <class T>
void read_centres(Variant variant, const GridShape& grid, const TileCells& cells, const T* state, T* rows);
template <class T>
void write_centres(const GridShape& grid, const TileCells& cells, const T* rows, T* state);

// The gradients of patches, kept by position: (samples, C, 9, slots, W). A grid that is cut into bands of rows needs
// only some rows at a time: row r is in slot r when slots >= H; otherwise rows 0 and 1 have slots 0 and 1 and the
// others share the rest in turn.
struct PatchPlanes {
  std::size_t slots = 1;
  std::size_t slot(std::size_t row, std::size_t height) const {
    return slots >= height || row < 2 ? row : 2 + (row - 2) % (slots - 2);
  }
};

// dl_dx[x] = sum over p = 0..8, in this order from 0, of the gradient at position p of the cell whose neighbour p is
// (row, x). `planes` points at channel c of a sample: (9, slots, W).
template <class T>
void gather_row(const GridShape& grid, const PatchPlanes& shape, const T* planes, std::size_t row, T* dl_dx);

}  // namespace gradloom::kernels::gate
