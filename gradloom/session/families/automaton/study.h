// What a hard rule can do: larger grids, asynchronous cells, damage and healing, as figures.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <utility>
#include <vector>

#include "gradloom/circuit/circuit.h"
#include "gradloom/circuit/grid.h"
#include "gradloom/data/grids.h"
#include "gradloom/exec/exec.h"

namespace gradloom {

// A rule and what it was trained for.
struct AutomatonSubject {
  circuit::CellRule rule;
  GridTask task;
  std::size_t steps = 20;  // after which it is judged
  double fire = 1.0;       // of training; 1: synchronous
  std::uint64_t seed = 0;
};

// Fractions of the target bits that are right. A checkerboard may come out with its colours swapped, which is counted
// as well. Other tasks have `same` alone.
struct PhaseAccuracy {
  double same = 0, swapped = 0;
  double best() const { return same > swapped ? same : swapped; }
};

PhaseAccuracy phase_accuracy(const GridTask& task, std::span<const std::uint8_t> target, const circuit::Grid& grid);

// The share of a checkerboard's cells that are right when the board may be shifted, as on a grid whose side is no
// multiple of the square: the best of all shifts. The grid has the task's size.
double shifted_accuracy(const GridTask& task, const circuit::Grid& grid);

// A sample's start (C, H, W) as a grid.
template <class T>
circuit::Grid start_grid(const GridTask& task, const T* x);

// The grids on which a rule is studied, rows and columns: one, two and four times those that were trained, of both
// parities. Larger ones only up to 4 million bits: they would take longer than many a training.
std::vector<std::pair<std::size_t, std::size_t>> studied_sizes(std::size_t height, std::size_t width,
                                                               std::size_t channels);

// JSON: neighbourhoods (life: how many of the 512 are right), sizes (larger grids, both parities), asynchronous, damage
// (accuracy at each step while a block is dead, and after its repair), endurance (4000 steps under repeated damage),
// stability (a picture: `grown`, its accuracy after the `trained_steps`; `accuracy`, the least of all from there to
// `steps`, which are 4 times as many and at least 100 more; `kept`, the further steps before it first gets worse than
// grown). Parts that make no sense for the task are left out.
nlohmann::json study_automaton(const Exec& ex, const AutomatonSubject& subject);

}  // namespace gradloom
