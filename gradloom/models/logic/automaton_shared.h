// What the forward and the backward pass of the automaton share; not part of the interface.
#pragma once

#include <algorithm>
#include <string>

#include "gradloom/base/error.h"
#include "gradloom/base/rounding.h"
#include "gradloom/kernels/gate/patch.h"
#include "gradloom/models/logic/automaton.h"

namespace gradloom::logic {

namespace gate = kernels::gate;

inline constexpr std::size_t kTile = gate::kTile;
inline constexpr std::size_t kBlock = 4096;  // cells that are asked at a time whether they fire
inline constexpr std::size_t kShards = 32;   // at most: sums of gates exist this often

// One channel of a sample without its frame, and back.
template <class T>
void copy_from_state(const gate::GridShape& grid, const T* channel, T* cells) {
  for (std::size_t row = 0; row < grid.height; ++row)
    std::copy_n(channel + grid.at(row, 0), grid.width, cells + row * grid.width);
}
template <class T>
void copy_to_state(const gate::GridShape& grid, const T* cells, T* channel) {
  for (std::size_t row = 0; row < grid.height; ++row)
    std::copy_n(cells + row * grid.width, grid.width, channel + grid.at(row, 0));
}

// What a worker needs beside the scratch of a tile.
template <class T>
struct TileMemory {
  TileMemory(const CellShape& shape, T* memory)
      : patch(memory),
        // Here and below, one extra row absorbs the overrun.
        out(patch + (shape.channels * gate::kPatch + 1) * kTile),
        dl_dpatch(out + (shape.channels + 1) * kTile),
        scratch(dl_dpatch + shape.channels * gate::kPatch * kTile) {}
  static std::size_t size(const CellShape& shape) {
    return (shape.channels * (2 * gate::kPatch + 1) + 2) * kTile + shape.scratch();
  }
  T *patch, *out, *dl_dpatch, *scratch;
};

// Which cells belong to which shard, by batch and grid alone. Several whole samples where there are at least kShards of
// them, or where several fit into kTiles tiles; else contiguous cells of one sample, at least kTiles tiles.
struct CellShards {
  static constexpr std::size_t kTiles = 4;
  std::size_t samples, cells;  // of the batch; of a sample

  bool whole() const { return samples >= kShards || 2 * cells <= kTiles * kTile; }
  std::size_t whole_samples() const {
    return std::max(divide_up(samples, kShards), std::max<std::size_t>(1, kTiles * kTile / cells));
  }
  std::size_t part_cells() const {
    if (whole()) return cells;
    const std::size_t parts = std::min(kShards / std::max<std::size_t>(1, samples), cells / (kTiles * kTile));
    return round_up(divide_up(cells, std::max<std::size_t>(1, parts)), kTile);
  }
  std::size_t parts() const { return whole() ? 1 : divide_up(cells, part_cells()); }
  std::size_t count() const { return whole() ? divide_up(samples, whole_samples()) : samples * parts(); }
  std::size_t samples_of() const { return whole() ? whole_samples() : 1; }  // of one shard
  // The shard that begins with a sample, or would; a multiple of samples_of(), or the end.
  std::size_t first_of(std::size_t sample) const {
    return whole() ? divide_up(sample, whole_samples()) : sample * parts();
  }
  std::size_t begin(std::size_t shard) const {
    if (whole()) return std::min(samples, shard * whole_samples()) * cells;
    return shard / parts() * cells + std::min(cells, shard % parts() * part_cells());
  }
};

[[noreturn]] inline void refuse(const std::string& message) { throw_invalid(message); }

}  // namespace gradloom::logic
