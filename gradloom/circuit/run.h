// Runs a cell rule on a grid: 64 to 256 cells per instruction, on all threads, skipping what stands still.
#pragma once

#include <cstdint>
#include <vector>

#include "gradloom/circuit/circuit.h"
#include "gradloom/circuit/grid.h"
#include "gradloom/circuit/program.h"
#include "gradloom/exec/exec.h"

namespace gradloom::circuit {

// fire < 1 is the asynchronous mode: a cell takes its next state with this probability and otherwise keeps its own.
// Cell (y, x) fires at step s (counted from 0) when RandomStream(seed, RandomUse::fire, 0, s).uniform(y * W + x) <
// fire; all its channels fire together. In a strip of a larger grid y is the row of that grid; see stream_of_cells()
// for grids of more than 2^32 cells.
struct RunOptions {
  double fire = 1.0;  // in [0, 1]
  std::uint64_t seed = 0;
  enum class Tiles { skip_unchanged, all } tiles = Tiles::skip_unchanged;  // `all`: to measure what a step costs
  RowsOf strip = {};
};

// The definition: one cell after another, one gate after another. `step` is the number of the step.
Grid step_reference(const CellRule& rule, const Grid& grid, const RunOptions& options = {}, std::uint32_t step = 0);

// Gives the bits of step_reference for every number of threads and every instruction set. The grid is cut into tiles;
// in synchronous mode a tile is skipped when neither it nor a neighbour changed in the step before.
class Runner {
 public:
  // `exec` must outlive the Runner. Throws Exception(invalid_input) for a bad rule or a grid of another number of
  // channels, out_of_memory when the second grid does not fit.
  Runner(const Exec& exec, const CellRule& rule, Grid start, RunOptions options = {});

  void step(std::uint64_t steps = 1);
  const Grid& grid() const { return now_; }
  void set_grid(Grid grid);  // of the same size; the steps are counted on

  std::uint64_t steps() const { return steps_; }
  std::size_t tiles() const { return tile_rows_ * tile_columns_; }
  std::uint64_t tiles_computed() const { return tiles_computed_; }  // in all steps
  const BitProgram& program() const { return program_; }

 private:
  struct Tile {
    std::size_t y, y_end, w, w_end;
  };
  Tile tile(std::size_t index) const;
  bool awake(std::size_t index) const;
  void lay_out();
  void load_row(std::uint64_t* memory, const Tile& tile, std::ptrdiff_t y, unsigned ring) const;
  bool store_row(std::uint64_t* memory, const Tile& tile, std::size_t y, unsigned phase);
  bool compute(const Tile& tile, std::uint64_t* memory);

  const Exec& exec_;
  std::uint32_t channels_;
  Boundary boundary_;
  RunOptions options_;
  BitProgram program_;
  Grid now_, next_;

  // One worker's memory, in words: three rows of each channel that is read, each as centre, west and east, then the
  // temporaries. The program exists three times, for each turn of the ring of rows.
  std::size_t strip_ = 0;  // words of a tile's row
  std::size_t memory_words_ = 0;
  std::vector<std::uint32_t> centre_at_[3], west_at_[3], east_at_[3];  // [ring][channel]
  std::vector<unsigned char> uses_channel_, uses_sides_;
  std::vector<kernels::bits::BitInstruction> programs_[3];
  std::vector<std::uint32_t> output_at_[3];
  std::size_t fire_at_ = 0;
  std::vector<Buffer<std::uint64_t>> memory_;  // per worker

  std::size_t tile_rows_ = 0, tile_columns_ = 0;
  std::vector<unsigned char> changed_, changes_;  // per tile: in the last step, in this one
  std::uint64_t steps_ = 0, tiles_computed_ = 0;
};

}  // namespace gradloom::circuit
