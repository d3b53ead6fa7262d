// Patterns in the run-length format that programs for cellular automata share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gradloom/base/result.h"
#include "gradloom/circuit/circuit.h"
#include "gradloom/circuit/grid.h"

namespace gradloom::circuit {

struct Bounds {
  std::uint64_t width = 0, height = 0;
  Boundary boundary = Boundary::periodic;
};

struct Pattern {
  std::string rule;              // as the header says, without bounds; may be empty
  std::optional<Bounds> bounds;  // of the grid, where the header has B3/S23:T80,60 (a torus) or :P80,60 (zeros around)
  Grid cells;  // one channel for two states, else as many as the states need bits: channel c is bit c of the state
};

// The text is not trusted. Lines that start with # are comments; the header is `x = W, y = H` and maybe `rule = R`;
// then runs of a count and a letter up to `!`: b or . is 0, o or A is 1, B..X are 2..24, pA..yO are 25..255; $ ends a
// row. What a row or the pattern leaves out is 0. Fails with invalid_input, and the line, when anything else stands
// there, when a row or the pattern is longer than the header says, when the `!` is missing, or when the pattern or its
// bounds have more than max_cells cells (nothing that large is allocated).
Result<Pattern> parse_rle(std::string_view text, std::uint64_t max_cells = std::uint64_t{1} << 30);

// The whole grid, lines of at most 70 characters. One channel is written with b and o, up to eight channels with . and
// A..yO. Throws Exception(unsupported) for more channels.
std::string to_rle(const Grid& grid, std::string_view rule = "");

// Writes the pattern's channels over the grid's, upper left corner at (top, left). Throws Exception(invalid_input) when
// it does not fit or has more channels.
void place(Grid& grid, const Grid& pattern, std::size_t top, std::size_t left);
// In the middle.
void place_centred(Grid& grid, const Grid& pattern);

}  // namespace gradloom::circuit
