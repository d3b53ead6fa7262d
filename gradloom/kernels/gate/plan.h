// The order in which the gates of a layer are evaluated. Neighbours in it share rows: forward then loads a row once,
// and backward adds its two terms in registers (AVX2; other instruction sets visit every gate by itself). It changes no
// bit (gate.h, order of sums).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gradloom::kernels::gate {

// What dl_din holds when backward of a layer starts.
enum class RowStart {
  given,    // numbers to add to
  nothing,  // anything; it is overwritten
};

// What the gates of a run have in common. Rows are written, not added to, by pairs and chains only.
enum class Visit : std::uint8_t {
  plain,  // nothing
  same,   // all read the same two rows
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
  RowStart start = RowStart::nothing;
  std::size_t rows = 0;                  // R
  std::vector<std::uint32_t> position;   // of gate n in the order of evaluation
  std::vector<Run> runs;                 // in that order; forward goes from first to last, backward from last to first
  std::vector<std::uint32_t> unwritten;  // rows that neither pairs nor chains write; none with RowStart::given
};

// Plain gates come first and keep their order, so backward visits them last, from the last to the first. A row that
// both a plain gate and one of a pair or chain read is read by these two alone, so the order of its two terms does not
// matter.
// Throws Exception{invalid_input} when a gate reads a row beyond `rows`.
LayerPlan plan_layer(std::span<const GateRows> gates, std::size_t rows, RowStart start);

}  // namespace gradloom::kernels::gate
