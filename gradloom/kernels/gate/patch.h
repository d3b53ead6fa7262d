// From grids of cells to patches of a tile, and from gradients of patches back to gradients of cells.
//
// Letters: H, W the grid's height and width; B samples; C channels. Position p of a patch, row-major, is the cell at (y
// + p / 3 - 1, x + p % 3 - 1). Beyond the border a periodic grid goes on at the other side, also where H or W is 1 or 2
// and one cell is several neighbours; a zero border is 0. A state is (B, H + 2, C, W + 2): a frame of one cell around
// the grid holds what is beyond, so every neighbour is at the same distance from its cell, and what a tile reads lies
// close together. Only gather_row computes: additions of single numbers in a fixed order, the same bits everywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gradloom/kernels/gate/gate.h"

namespace gradloom::kernels::gate {

inline constexpr std::size_t kPatch = 9;
inline constexpr std::size_t kCentre = 4;  // the position of the cell itself

enum class Border { periodic, zero };

struct GridShape {
  std::size_t height = 1, width = 1;
  Border border = Border::periodic;
  std::size_t channels = 1;

  std::size_t cells() const { return height * width; }
  // In a state, from a channel, row or sample to the next. Reading L values from any element of a sample stays inside
  // the state.
  std::size_t channel_step() const { return width + 2; }
  std::size_t row_step() const { return channels * channel_step(); }
  std::size_t sample_step() const { return ((height + 2) * row_step() + 2 * kTile - 2) / kTile * kTile; }
  // A cell's first channel, in its sample; cell = row * W + column.
  std::size_t at(std::size_t row, std::size_t column) const { return (row + 1) * row_step() + column + 1; }
  std::size_t at(std::size_t cell) const { return at(cell / width, cell % width); }
  // Offsets from a cell to its neighbours, modulo 2^64: those that point backwards wrap when added.
  std::array<std::size_t, kPatch> neighbours() const;
};

// Writes the frame of one sample of a periodic grid. That of a zero border is left alone: whoever makes the state fills
// it with 0 once, and nothing here writes it.
template <class T>
void close_frame(const GridShape& grid, T* sample);

// Up to 16 cells of a batch, where they are and where their first channels lie in the state.
struct TileCells {
  std::size_t count = 0;  // lanes with a cell; the others are not initialised
  std::uint32_t sample[kTile], row[kTile], column[kTile];
  std::size_t at[kTile];
};

// `numbers`: sample * cells() + cell, strictly ascending, at most 16.
TileCells find_cells(const GridShape& grid, const std::uint32_t* numbers, std::size_t count);

// patch (C, 9, L), 0 in lanes without a cell, and room for L numbers behind it, which are overwritten; apart from the
// state, whose frame is closed.
template <class T>
void read_patches(Variant variant, const GridShape& grid, const TileCells& cells, const T* state, T* patch);

// rows (C, L): the cells themselves, otherwise as above; the frame does not matter. And back: lanes without a cell are
// left out, and the frame is no longer closed.
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
