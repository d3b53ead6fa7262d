// From grids of cells to patches of a tile, and from gradients of patches back to gradients of cells.
//
// Letters: H, W the grid's height and width; cell y W + x. Position p of a patch, row-major, is the cell at (y + p / 3
// - 1, x + p % 3 - 1). Beyond the border a periodic grid goes on at the other side, also where H or W is 1 or 2 and one
// cell is several neighbours; a zero border is 0. These functions are plain code for every variant: additions of single
// numbers in a fixed order have the same bits everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gradloom/kernels/gate/gate.h"

namespace gradloom::kernels::gate {

inline constexpr std::size_t kPatch = 9;

enum class Border { periodic, zero };

// The least plane for a grid of so many cells: a multiple of L in which L numbers from any cell on are there.
inline constexpr std::size_t padded_plane(std::size_t cells) { return (cells + 2 * kTile - 2) / kTile * kTile; }

struct GridShape {
  std::size_t height = 1, width = 1;
  Border border = Border::periodic;
  // Numbers of one channel's plane, padded_plane(H W) at least; the rest is 0 and stays 0.
  std::size_t plane = 0;
  std::size_t channels = 1;

  std::size_t cells() const { return height * width; }
  std::size_t sample() const { return channels * plane; }
};

// Where the patches of up to 16 cells lie in the state (B, C, plane): neighbour p of lane l of channel c is
// state[at[p][l] + c * plane]. Lanes without a cell and cells beyond a zero border point at a zero.
struct PatchIndex {
  std::size_t count = 0;  // lanes with a cell
  std::size_t at[kPatch][kTile];
  std::uint32_t sample[kTile], row[kTile], column[kTile];
  bool centres = false;  // all lanes have a cell, and at[4] counts up by one from the first to the last
  // at[p] as pieces of memory. From each of up to two starts on, lanes count up by one, but for single lanes in
  // between. Many pieces (cells that are not neighbours, rows of few cells), or lanes without a cell: starts is 0.
  struct Pieces {
    std::uint8_t starts = 0, start[2] = {}, singles = 0, single[4] = {};
  } pieces[kPatch];
};

// Cell numbers: sample * cells + cell; count <= 16.
void find_patches(const GridShape& grid, const std::uint32_t* cells, std::size_t count, PatchIndex* index);

// patch (C, 9, L), and room for L numbers behind it, which are overwritten. Planes are read by pieces of L numbers.
template <class T>
void read_patches(const GridShape& grid, const PatchIndex& index, const T* state, T* patch);

// rows (C, L): the cells themselves; 0 in lanes without one. And back, lanes without a cell are left out.
template <class T>
void read_centres(const GridShape& grid, const PatchIndex& index, const T* state, T* rows);
template <class T>
void write_centres(const GridShape& grid, const PatchIndex& index, const T* rows, T* state);

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
