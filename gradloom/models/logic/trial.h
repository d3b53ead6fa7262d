// Trials of a hard rule on a small grid, 64 starts at a time: how many bits come out wrong?
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gradloom/circuit/circuit.h"

namespace gradloom::logic {

// Bit k of every word belongs to start k. Letters: C channels, Ct of them with a target, H, W.
struct Trial {
  std::size_t channels = 1, height = 1, width = 1;
  circuit::Boundary boundary = circuit::Boundary::periodic;
  std::vector<std::uint64_t> start{};   // (C, H, W)
  std::vector<std::uint64_t> target{};  // (Ct, H, W)

  // Dead cells are 0 and do not count, until the step `repaired`, from which on they are like any other.
  std::vector<std::uint64_t> dead{};  // (H, W); empty: none
  std::size_t repaired = 0;

  // In these starts a cell fires with this probability (in units of 1/256), by the stream of `seed`.
  std::uint64_t asynchronous = 0;
  unsigned fire = 256;
  std::uint64_t seed = 0;

  // The grid is compared with the target after `step` steps in the starts named; in ascending order.
  struct Look {
    std::size_t step = 1;
    std::uint64_t starts = ~std::uint64_t{0};
  };
  std::vector<Look> looks{};
};

// A circuit without what no output needs: pass-throughs and constants are folded away. Row r < inputs is an input, the
// next are masks, the others are temporaries, used again when nobody needs them any more.
struct LiveCircuit {
  static constexpr std::uint32_t kZero = ~0u, kOne = ~0u - 1;
  struct Instruction {
    circuit::Op op;
    std::uint32_t to, a, b;
    friend bool operator==(const Instruction&, const Instruction&) = default;
  };
  std::uint32_t inputs = 0, rows = 0;
  std::vector<std::uint64_t> masks;  // each row is this word throughout
  std::vector<Instruction> instructions;
  std::vector<std::uint32_t> outputs;  // rows, kZero or kOne
};

// In the starts of masks[mask] the gate has this function instead of its own.
struct Mutation {
  std::uint32_t gate;
  circuit::Op op;
  std::uint32_t mask;
};

// Keeps its memory from call to call.
class Folder {
 public:
  // Mutations are sorted by gate; each gate has at most one function in each start. Precondition: validate(circuit)
  // succeeds.
  const LiveCircuit& fold(const circuit::Circuit& circuit, std::span<const Mutation> mutations = {},
                          std::span<const std::uint64_t> masks = {});
  // The gates of the circuit that the outputs reach over operands that are not ignored.
  static std::vector<std::uint8_t> reached(const circuit::Circuit& circuit);

 private:
  std::uint32_t push(circuit::Op op, std::uint32_t a, std::uint32_t b);

  std::uint32_t first_ = 0;  // signals below are inputs and masks
  std::vector<std::uint32_t> value_, row_, last_use_, free_;
  std::vector<circuit::Gate> nodes_;
  LiveCircuit live_;
};

// Immutable but for the memory of one run.
class TrialRunner {
 public:
  explicit TrialRunner(Trial trial);

  // The same starts again and again: start k is start lanes[k % L] of this one, L = lanes.size(), a divisor of 64.
  TrialRunner repeat(std::span<const unsigned> lanes) const;

  // Wrong target bits of living cells, over all looks and their starts. Gives up as soon as there are more than `most`
  // and returns a number above it.
  std::uint64_t wrong(const LiveCircuit& rule, std::uint64_t most);
  // The same for each group of adjacent starts, 64 / wrong.size() of them: a power of two. Gives up, and returns false,
  // as soon as every group but the first has more than `most`.
  [[nodiscard]] bool wrong_by_group(const LiveCircuit& rule, std::uint64_t most, std::span<std::uint64_t> wrong);

 private:
  void begin(const LiveCircuit& rule);
  void step(const LiveCircuit& rule, std::size_t number);
  void wrap();
  // Calls count(word of wrong starts) for each target bit.
  template <class Count>
  void compare(const Trial::Look& look, Count count) const;

  Trial trial_;
  std::size_t stride_, words_, first_, plane_;  // of a plane with a border of one cell: a row, all within, its begin
  std::vector<std::uint64_t> alive_, inside_, target_, start_, firing_;
  std::vector<std::uint64_t> now_, next_, rows_;
};

}  // namespace gradloom::logic
