// The order in which the gates of a layer are evaluated. Neighbours in it share rows: forward then loads a row once,
// and backward adds its terms in registers (AVX2 and later; other instruction sets visit every gate by itself). It
// changes no bit (gate.h, order of sums).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gradloom::kernels::gate {

inline constexpr std::uint32_t kNoRow = ~std::uint32_t{0};

// What the gates of a run have in common. Rows are written, not added to, by pairs and chains, and rows a by fans.
enum class Visit : std::uint8_t {
  plain,  // nothing
  same,   // all read the same two rows
  fan,    // all read the same row as b, and each as a one that no other gate reads and that is not given
  pairs,  // no other gate of the pairs and chains reads their rows
  chain,  // b of a gate is a of the next one, and no third gate reads that row; none of pairs and chains the two ends
};

struct Run {
  Visit visit = Visit::plain;
  std::uint32_t count = 0;  // gates
};

// The rows that a gate reads.
struct GateRows {
  std::uint32_t a = 0, b = 0;
};

struct LayerPlan {
  std::size_t rows = 0;                  // R
  std::uint32_t given = kNoRow;          // the row of dl_din that backward adds to; all others are overwritten
  std::vector<std::uint32_t> position;   // of gate n in the order of evaluation
  std::vector<Run> runs;                 // in that order; forward goes from first to last, backward from last to first
  std::vector<std::uint32_t> unwritten;  // rows that no run writes, but for the given one
};

// Plain gates, same ones and fans come first and keep their order, so backward visits them last, from the last to the
// first. A row that both one of these and one of a pair or chain read is read by these two alone, so the order of its
// two terms does not matter. Throws Exception{invalid_input} when a gate reads a row beyond `rows`, or such a row is
// given.
LayerPlan plan_layer(std::span<const GateRows> gates, std::size_t rows, std::uint32_t given = kNoRow);

}  // namespace gradloom::kernels::gate
