// Trials of a hard rule on a small grid, 64 starts at a time: how many bits come out wrong?
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gradloom/circuit/circuit.h"
#include "gradloom/circuit/program.h"

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

// A rule compiled for trials. Rows are the circuit's inputs, one row for each mask, then temporaries.
struct TrialProgram {
  circuit::BitProgram program;
  std::vector<std::uint64_t> masks;  // the word that a mask's row holds throughout
  std::size_t gates = 0;             // that outputs need, once pass-throughs and constants are folded away
};

// In the starts of masks[mask] the gate has this function instead of its own.
struct Mutation {
  std::uint32_t gate;
  circuit::Op op;
  std::uint32_t mask;
};

// Folds pass-throughs and constants away and drops what no output needs: less than circuit::compile() does, and much
// faster, because a program runs on a few words only. Keeps its memory from call to call.
class TrialCompiler {
 public:
  // Mutations are sorted by gate; each gate has at most one function in each start. Precondition: validate(circuit)
  // succeeds.
  const TrialProgram& compile(const circuit::Circuit& circuit, std::span<const Mutation> mutations = {},
                              std::span<const std::uint64_t> masks = {});
  // The gates of the circuit that the outputs reach over operands that are not ignored.
  static std::vector<std::uint8_t> reached(const circuit::Circuit& circuit);

 private:
  std::uint32_t push(circuit::Op op, std::uint32_t a, std::uint32_t b);

  std::uint32_t first_ = 0;  // signals below are inputs and masks
  std::vector<std::uint32_t> value_, row_, last_use_, free_;
  std::vector<circuit::Gate> nodes_;
  TrialProgram compiled_;
};

// Immutable but for the memory of one run.
class TrialRunner {
 public:
  explicit TrialRunner(Trial trial);

  // The same starts again and again: start k is start lanes[k % L] of this one, L = lanes.size(), a divisor of 64.
  TrialRunner repeat(std::span<const unsigned> lanes) const;

  // Wrong target bits of living cells, over all looks and their starts. Gives up as soon as there are more than `most`
  // and returns a number above it.
  std::uint64_t wrong(const TrialProgram& rule, std::uint64_t most);
  // The same for each group of adjacent starts, 64 / wrong.size() of them: a power of two. Gives up, and returns false,
  // as soon as every group but the first has more than `most`.
  [[nodiscard]] bool wrong_by_group(const TrialProgram& rule, std::uint64_t most, std::span<std::uint64_t> wrong);

 private:
  void begin(const TrialProgram& rule);
  void step(const TrialProgram& rule, std::size_t number);
  void wrap();
  std::uint64_t* aligned_rows();
  // Calls count(word of wrong starts) for each target bit.
  template <class Count>
  void compare(const Trial::Look& look, Count count) const;

  Trial trial_;
  std::size_t stride_, words_, first_, plane_;  // of a plane with a border of one cell: a row, all within, its begin
  std::size_t row_;                             // words_, rounded up for the kernel
  std::vector<std::uint64_t> alive_, inside_, target_, start_, firing_;
  std::vector<std::uint64_t> now_, rows_;
  std::vector<kernels::bits::BitInstruction> instructions_;
};

}  // namespace gradloom::logic
