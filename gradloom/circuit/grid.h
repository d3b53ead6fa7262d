// Grid: the cells of an automaton, one bit per cell and channel, 64 cells in a word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gradloom/base/random.h"
#include "gradloom/exec/buffer.h"

namespace gradloom::circuit {

// (C, H, W): cell x of a row is bit x % 64 of word x / 64; a row is words_per_row() words, and the bits beyond the
// width are zero.
class Grid {
 public:
  Grid() = default;
  // All zero. Throws Exception(invalid_input) for an empty size or more than 2^32 cells, and Exception(out_of_memory)
  // when the machine has no such memory.
  Grid(std::uint32_t channels, std::size_t height, std::size_t width);
  Grid copy() const;

  std::uint32_t channels() const { return channels_; }
  std::size_t height() const { return height_; }
  std::size_t width() const { return width_; }
  std::size_t words_per_row() const { return words_; }
  std::uint64_t last_word_mask() const {
    return width_ % 64 == 0 ? ~std::uint64_t{0} : (std::uint64_t{1} << width_ % 64) - 1;
  }

  // Whoever writes a row keeps the bits beyond the width zero.
  std::uint64_t* row(std::uint32_t c, std::size_t y) { return bits_.data() + c * plane_ + y * words_; }
  const std::uint64_t* row(std::uint32_t c, std::size_t y) const { return bits_.data() + c * plane_ + y * words_; }
  bool get(std::uint32_t c, std::size_t y, std::size_t x) const { return row(c, y)[x / 64] >> x % 64 & 1; }
  void set(std::uint32_t c, std::size_t y, std::size_t x, bool value);

  std::uint64_t population(std::uint32_t channel) const;
  friend bool operator==(const Grid& a, const Grid& b);

 private:
  std::uint32_t channels_ = 0;
  std::size_t height_ = 0, width_ = 0, words_ = 0;
  std::size_t plane_ = 0;  // words of a channel
  Buffer<std::uint64_t> bits_;
};

// Which rows of a larger grid a strip holds: from `first` on, and around its edge. rows 0: the grid is no strip.
struct RowsOf {
  std::size_t first = 0, rows = 0;
  std::size_t row(std::size_t y) const { return rows == 0 ? y : (first + y) % rows; }
};

// The random numbers of 2^32 cells: `piece` is 0 for the first of them. Cell n has position n mod 2^32 in piece n /
// 2^32.
RandomStream stream_of_cells(std::uint64_t seed, RandomUse use, std::uint64_t piece, std::uint32_t number);
inline constexpr std::uint64_t kCellsOfStream = std::uint64_t{1} << 32;

// Cells are 1 with probability `density`, each channel by itself, as a function of the seed and the cell alone.
// density in [0, 1].
void fill_random(Grid& grid, double density, std::uint64_t seed, RowsOf strip = {});

}  // namespace gradloom::circuit
