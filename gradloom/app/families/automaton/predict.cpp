// Automata that run new starts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "gradloom/app/families/automaton/automaton.h"
#include "gradloom/circuit/run.h"
#include "gradloom/data/npy.h"
#include "gradloom/session/families/automaton/family.h"

namespace gradloom::app {
namespace {

// Starts of an array of bits: (C, H, W), or (N, C, H, W).
struct Starts {
  std::size_t count = 0, height = 0, width = 0;
  std::vector<std::uint8_t> bits;
};

Result<Starts> read_starts(const std::filesystem::path& file, std::size_t channels) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30, kMostCells = std::size_t{1} << 24;
  if (file.extension() != ".npy")
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: starts of an automaton are bits in a .npy file, of shape ({}, height, width) or "
                             "(starts, {}, height, width)",
                             file.string(), channels, channels)};
  auto array = read_npy(file, kMostBytes);
  if (!array) return array.error();
  const std::vector<std::size_t>& shape = array->shape;
  const std::size_t d = shape.size() == 4 ? 1 : 0;
  if ((shape.size() != 3 && shape.size() != 4) || shape[d] != channels || array->size() == 0)
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: the shape is ({}); starts are ({}, height, width) or (starts, {}, height, width)",
                             file.string(), fmt::join(shape, ", "), channels, channels)};
  Starts starts{d == 0 ? 1 : shape[0], shape[d + 1], shape[d + 2], {}};
  if (starts.count * starts.height * starts.width > kMostCells)
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: there are more than {} cells; `gradloom run-circuit` runs large grids", file.string(),
                             kMostCells)};
  for (const double v : array->to_doubles()) {
    if (v != 0.0 && v != 1.0)
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}: a cell has the value {}; it must be 0 or 1", file.string(), v)};
    starts.bits.push_back(v == 1.0);
  }
  return starts;
}

// Names and truths of all cells, and what the hard circuit makes of them.
PredictedTable run_starts(const Exec& ex, const AutomatonSubject& subject, const Starts& starts) {
  GridTask task = subject.task;
  const bool judged =
      task.kind != GridTaskKind::picture || (task.height == starts.height && task.width == starts.width);
  task.height = starts.height, task.width = starts.width;
  const std::size_t cells = task.height * task.width, channels = task.channels;
  const std::size_t targets = judged ? target_channels(task) : 0;
  PredictedTable table;
  table.rows = starts.count * cells;
  table.shape = {starts.count, channels, task.height, task.width};
  table.precision = Precision::float32;
  std::vector<std::string> row, at_y, at_x;
  std::vector<std::vector<std::string>> truth(targets), found(channels);
  double right = 0.0;
  for (std::size_t s = 0; s < starts.count; ++s) {
    const std::span<const std::uint8_t> start(starts.bits.data() + s * channels * cells, channels * cells);
    std::vector<float> x(start.begin(), start.end());
    circuit::Runner runner(ex, subject.rule, start_grid(task, x.data()),
                           {.fire = subject.fire, .seed = subject.seed + s});
    runner.step(subject.steps);
    const circuit::Grid& end = runner.grid();
    const std::vector<std::uint8_t> target = judged ? grid_target(task, start) : std::vector<std::uint8_t>();
    if (judged) right += phase_accuracy(task, target, end).best();
    for (std::size_t i = 0; i < cells; ++i) {
      row.push_back(fmt::format("{}", s + 1));
      at_y.push_back(fmt::format("{}", i / task.width));
      at_x.push_back(fmt::format("{}", i % task.width));
      for (std::size_t c = 0; c < targets; ++c) truth[c].emplace_back(target[c * cells + i] ? "1" : "0");
      for (std::uint32_t c = 0; c < channels; ++c)
        found[c].emplace_back(end.get(c, i / task.width, i % task.width) ? "1" : "0");
    }
    for (std::uint32_t c = 0; c < channels; ++c)
      for (std::size_t i = 0; i < cells; ++i) table.values.push_back(end.get(c, i / task.width, i % task.width));
  }
  table.add("row", std::move(row));
  table.add("y", std::move(at_y));
  table.add("x", std::move(at_x));
  for (std::size_t c = 0; c < targets; ++c) table.add(fmt::format("c{}", c + 1), std::move(truth[c]));
  for (std::size_t c = 0; c < channels; ++c) table.add(fmt::format("c{}_predicted", c + 1), std::move(found[c]));
  if (judged)  // there is no loss: that is of soft states
    table.metrics = PartMetrics{std::numeric_limits<double>::quiet_NaN(),
                                {{"hard_accuracy", right / static_cast<double>(starts.count)}},
                                0,
                                false};
  return table;
}

}  // namespace

Result<PredictedTable> run_automaton(const Exec& ex, const AutomatonSubject& subject,
                                     const std::filesystem::path& file) {
  auto starts = read_starts(file, subject.task.channels);
  if (!starts) return starts.error();
  return run_starts(ex, subject, *starts);
}

}  // namespace gradloom::app
