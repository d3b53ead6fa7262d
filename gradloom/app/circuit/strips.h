// A grid of cells in strips of rows, one for each rank.
#pragma once

#include <vector>

#include "gradloom/circuit/run.h"
#include "gradloom/comm/comm.h"

namespace gradloom::app {

// The rows of a rank, with rows of its neighbours around them (halos), which it computes as well: what is wrong at the
// edge of a halo comes one row nearer in each step.
struct Strip {
  std::size_t height = 0;            // of the whole grid
  std::size_t first = 0, count = 0;  // own rows
  std::size_t above = 0, below = 0;  // rows of halos; 0 at a zero boundary, and for one process

  std::size_t rows() const { return above + count + below; }
  circuit::RowsOf rows_of() const { return {(first + height - above) % height, height}; }
};

// `comm` null: the whole grid. A strip needs a row: height >= comm->size().
Strip strip_of(const Comm* comm, std::size_t height, circuit::Boundary boundary);

// The rows of a strip of a whole grid.
circuit::Grid cut_strip(const circuit::Grid& whole, const Strip& strip);

// circuit::Runner over strips, with the bits of one process. All ranks call the same functions.
class StripRunner {
 public:
  // `start` has the rows of the strip. Executor and comm outlive it.
  StripRunner(const Exec& ex, Comm* comm, const circuit::CellRule& rule, circuit::Grid start, const Strip& strip,
              circuit::RunOptions options);

  void step(std::uint64_t steps);
  std::vector<std::uint64_t> populations() const;  // of the whole grid, per channel
  double tiles_computed_share() const;             // of all tiles of all steps
  circuit::Grid whole() const;                     // on rank 0; the own rows elsewhere

 private:
  void exchange_halos();
  std::vector<std::uint64_t> summed(std::vector<std::uint64_t> own) const;

  Comm* comm_;
  Strip strip_;
  circuit::Runner runner_;
};

}  // namespace gradloom::app
