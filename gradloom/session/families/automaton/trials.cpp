#include "gradloom/session/families/automaton/trials.h"

#include <algorithm>
#include <numeric>

#include "gradloom/base/random.h"
#include "gradloom/circuit/run.h"

namespace gradloom {
namespace {

using logic::Trial;

constexpr std::size_t kTrialStarts = 64;    // of a trial
constexpr unsigned kFire = 154;             // of 256: close to 0.6
constexpr std::size_t kLargerStarts = 4;    // on each larger grid
constexpr std::size_t kLargestSide = 64;    // of a checkerboard in a trial, about
constexpr std::size_t kClearOfTheEdge = 3;  // cells between a dead block and the edge
constexpr std::uint64_t kSynchronous = 0xffff, kAsynchronous = kSynchronous << 16, kDamaged = ~std::uint64_t{0} << 32;

// A checkerboard is tried on a grid that is not too large for 64 of them, with the same number of cells beyond the last
// pair of squares.
GridTask tried(GridTask task) {
  task.damage = 0;
  if (task.kind != GridTaskKind::checkerboard) return task;
  const auto cut = [&](std::size_t side) {
    const std::size_t period = 2 * task.square, most = std::max(kLargestSide, period);
    return side <= most ? side : most / period * period + side % period;
  };
  task.height = cut(task.height);
  task.width = cut(task.width);
  return task;
}

void kill_blocks(const GridTask& task, std::uint64_t seed, std::uint64_t epoch, Trial& trial) {
  trial.dead.assign(task.height * task.width, 0);
  const RandomStream random(seed, RandomUse::damage, static_cast<std::uint32_t>(epoch), 1u << 31);
  const std::size_t h = std::max<std::size_t>(1, task.height / 4), w = std::max<std::size_t>(1, task.width / 4);
  const auto place = [&](std::uint32_t position, std::size_t side, std::size_t block) {
    const std::size_t clear = std::min(kClearOfTheEdge, (side - block) / 2);
    return clear + random.below(position, static_cast<std::uint32_t>(side - block - 2 * clear + 1));
  };
  for (std::uint32_t k = 0; k < kTrialStarts; ++k) {
    if ((kDamaged >> k & 1) == 0) continue;
    const std::size_t top = place(2 * k, task.height, h), left = place(2 * k + 1, task.width, w);
    for (std::size_t y = top; y < top + h; ++y)
      for (std::size_t x = left; x < left + w; ++x) trial.dead[y * task.width + x] |= std::uint64_t{1} << k;
  }
}

void ask_for_a_checkerboard(const AutomatonSubject& subject, const GridTask& task, std::uint64_t epoch, Trial& trial) {
  const std::size_t steps = subject.steps;
  kill_blocks(task, subject.seed, epoch, trial);
  trial.repaired = 2 * steps;
  trial.fire = kFire;
  trial.seed = subject.seed + epoch;
  if (subject.fire < 1) {
    trial.fire = static_cast<unsigned>(std::max(1.0, subject.fire * 256 + 0.5));
    trial.asynchronous = ~std::uint64_t{0};
    trial.looks = {{steps, ~kDamaged}, {2 * steps, ~std::uint64_t{0}}, {4 * steps, ~std::uint64_t{0}}};
    return;
  }
  trial.asynchronous = kAsynchronous;
  trial.looks = {{steps, kSynchronous},
                 {2 * steps, kSynchronous | kDamaged},
                 {3 * steps, kSynchronous},
                 {4 * steps, ~std::uint64_t{0}}};
}

}  // namespace

std::vector<Trial> make_trials(const AutomatonSubject& subject, GridPart part, std::uint64_t epoch,
                               std::size_t starts) {
  const GridTask task = tried(subject.task);
  const bool board = task.kind == GridTaskKind::checkerboard;
  if (board) starts = kTrialStarts;
  const GridDataset<float> data(task, part, subject.seed, starts);
  auto storage = data.make_storage(kTrialStarts);
  std::vector<Trial> trials;
  for (std::size_t first = 0; first < starts; first += kTrialStarts) {
    std::vector<std::uint32_t> rows(std::min(kTrialStarts, starts - first));
    std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(first));
    const RowBatch<float> batch = data.draw(epoch, rows, storage);
    Trial trial{
        .channels = task.channels, .height = task.height, .width = task.width, .boundary = subject.rule.boundary};
    trial.start.assign(data.features(), 0);
    trial.target.assign(data.outputs(), 0);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      for (std::size_t i = 0; i < data.features(); ++i) trial.start[i] |= std::uint64_t{batch.x(k, i) != 0.0f} << k;
      for (std::size_t i = 0; i < data.outputs(); ++i)
        trial.target[i] |= std::uint64_t{batch.target(k, i) != 0.0f} << k;
    }
    const std::uint64_t all = rows.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << rows.size()) - 1;
    trial.looks = {{subject.steps, all}};
    if (subject.fire < 1) {
      trial.asynchronous = all;
      trial.fire = static_cast<unsigned>(std::max(1.0, subject.fire * 256 + 0.5));
      trial.seed = subject.seed + epoch;
    }
    if (board) ask_for_a_checkerboard(subject, task, epoch, trial);
    trials.push_back(std::move(trial));
  }
  return trials;
}

bool holds_on_larger_grids(const Exec& ex, const AutomatonSubject& subject, GridPart part, std::uint64_t epoch) {
  if (subject.task.kind != GridTaskKind::checkerboard) return true;
  for (const std::size_t factor : {2u, 4u}) {
    GridTask task = tried(subject.task);
    task.height *= factor;
    task.width *= factor;
    const GridDataset<float> data(task, part, subject.seed, kLargerStarts);
    auto storage = data.make_storage(1);
    for (std::uint32_t i = 0; i < kLargerStarts; ++i) {
      const RowBatch<float> batch = data.draw(epoch, {&i, 1}, storage);
      const circuit::Grid start = start_grid(task, batch.x.row(0));
      std::vector<std::uint8_t> target(data.outputs());
      for (std::size_t j = 0; j < target.size(); ++j) target[j] = batch.target(0, j) != 0.0f;
      circuit::Runner runner(ex, subject.rule, start.copy(), {.fire = subject.fire, .seed = subject.seed + i});
      runner.step(factor * subject.steps);
      // The phase that an odd number of squares leaves open is counted both ways, as in the study.
      if (phase_accuracy(task, target, runner.grid()).best() < 1) return false;
    }
  }
  return true;
}

}  // namespace gradloom
