#include "gradloom/session/families/automaton/study.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gradloom/base/random.h"
#include "gradloom/circuit/run.h"

namespace gradloom {
namespace {

using circuit::Grid;
using nlohmann::json;

constexpr std::size_t kStarts = 4;                          // random starts behind each figure, ...
constexpr std::size_t kManyUpdates = std::size_t{1} << 24;  // ... one, if it takes more updates of cells than this
constexpr std::size_t kEnduranceSteps = 4000;
constexpr std::size_t kFurtherSteps = 100;  // at least, of a picture that is grown
constexpr double kAsynchronousFire = 0.6;

struct Block {
  std::size_t y, x, height, width;
};

GridTask resized(GridTask task, std::size_t height, std::size_t width) {
  task.height = height;
  task.width = width;
  return task;
}

Grid random_start(const AutomatonSubject& subject, const GridTask& task, std::uint32_t number) {
  GridDataset<float> one(task, GridPart::test, subject.seed + 1 + number, 1);
  return start_grid(task, one.all().x.row(0));
}

// What the grid should look like `steps` after `start`.
std::vector<std::uint8_t> expected(const GridTask& task, const Grid& start, std::size_t steps) {
  const std::size_t cells = task.height * task.width;
  std::vector<std::uint8_t> state(task.channels * cells);
  for (std::size_t c = 0; c < task.channels; ++c)
    for (std::size_t i = 0; i < cells; ++i)
      state[c * cells + i] = start.get(static_cast<std::uint32_t>(c), i / task.width, i % task.width);
  if (task.kind != GridTaskKind::life) return grid_target(task, state);
  for (std::size_t s = 0; s < steps; ++s) state = grid_target(task, state);
  return state;
}

void fill_block(Grid& grid, const Block& block, const RandomStream* random) {
  std::uint32_t position = 0;
  for (std::uint32_t c = 0; c < grid.channels(); ++c)
    for (std::size_t y = block.y; y < block.y + block.height; ++y)
      for (std::size_t x = block.x; x < block.x + block.width; ++x)
        grid.set(c, y, x, random != nullptr && (random->bits(position++) & 1u));
}

void change_block(circuit::Runner& runner, const Block& block, const RandomStream* random) {
  Grid grid = runner.grid().copy();
  fill_block(grid, block, random);
  runner.set_grid(std::move(grid));
}

// Channel 0, a byte for each cell.
std::vector<std::uint8_t> cells_of(const Grid& grid) {
  std::vector<std::uint8_t> cells(grid.height() * grid.width());
  for (std::size_t y = 0; y < grid.height(); ++y)
    for (std::size_t x = 0; x < grid.width(); ++x) cells[y * grid.width() + x] = grid.get(0, y, x);
  return cells;
}

// The worst of several starts.
json run_size(const Exec& ex, const AutomatonSubject& subject, const GridTask& task, std::size_t steps, double fire) {
  PhaseAccuracy worst;
  double worst_best = 2, shifted = 0;
  const std::size_t starts = task.height * task.width > kManyUpdates / steps ? 1 : kStarts;
  for (std::uint32_t i = 0; i < starts; ++i) {
    Grid start = random_start(subject, task, i);
    const auto target = expected(task, start, steps);
    circuit::Runner runner(ex, subject.rule, std::move(start), {.fire = fire, .seed = subject.seed + i});
    runner.step(steps);
    const PhaseAccuracy a = phase_accuracy(task, target, runner.grid());
    if (a.best() < worst_best) {
      worst_best = a.best();
      worst = a;
      if (task.kind == GridTaskKind::checkerboard) shifted = shifted_accuracy(task, runner.grid());
    }
    if (task.start != GridStart::random) break;
  }
  json result{{"accuracy", worst.best()}};
  if (task.kind == GridTaskKind::checkerboard)
    result["same"] = worst.same, result["swapped"] = worst.swapped, result["shifted"] = shifted,
    result["cut"] = task.height % task.square != 0 || task.width % task.square != 0;
  result["height"] = task.height;
  result["width"] = task.width;
  result["steps"] = steps;
  result["fire"] = fire;
  result["starts"] = task.start == GridStart::random ? starts : 1;
  return result;
}

// Steps that a grid of this side needs when `steps` do for the trained one: what is known at one edge travels a cell in
// a step.
std::size_t steps_for(const AutomatonSubject& subject, std::size_t side, double fire) {
  const std::size_t trained = std::max(subject.task.height, subject.task.width);
  const std::size_t scaled = subject.steps * ((side + trained - 1) / trained);
  return fire < subject.fire ? 4 * scaled : scaled;  // cells that rest now and then take longer
}

json study_sizes(const Exec& ex, const AutomatonSubject& subject) {
  json sizes = json::array();
  const bool life = subject.task.kind == GridTaskKind::life;
  for (const auto& [height, width] :
       studied_sizes(life ? 16 : subject.task.height, life ? 16 : subject.task.width, subject.rule.channels))
    sizes.push_back(run_size(ex, subject, resized(subject.task, height, width),
                             life ? 100 : steps_for(subject, std::max(height, width), subject.fire), subject.fire));
  return sizes;
}

// How many of the 512 neighbourhoods get the next state that the rule gives them.
std::size_t right_neighbourhoods(const Exec& ex, const AutomatonSubject& subject) {
  const GridTask task = resized(subject.task, 3, 3);
  const GridDataset<float> all(task, GridPart::test, 0, 512);
  std::size_t right = 0;
  for (std::size_t s = 0; s < 512; ++s) {
    circuit::CellRule torus = subject.rule;
    torus.boundary = circuit::Boundary::periodic;
    circuit::Runner runner(ex, torus, start_grid(task, all.all().x.row(s)));
    runner.step();
    right += runner.grid().get(0, 1, 1) == (all.all().target(s, 4) != 0.0f);
  }
  return right;
}

Block centre_block(const GridTask& task) {
  const std::size_t h = std::max<std::size_t>(1, task.height / 4), w = std::max<std::size_t>(1, task.width / 4);
  return {(task.height - h) / 2, (task.width - w) / 2, h, w};
}

// Accuracy of the cells outside a block.
double accuracy_outside(const GridTask& task, std::span<const std::uint8_t> target, const Grid& grid,
                        const Block& block) {
  std::size_t same = 0, all = 0;
  for (std::size_t y = 0; y < task.height; ++y)
    for (std::size_t x = 0; x < task.width; ++x) {
      if (y - block.y < block.height && x - block.x < block.width) continue;
      ++all;
      same += grid.get(0, y, x) == (target[y * task.width + x] != 0);
    }
  const double share = static_cast<double>(same) / static_cast<double>(std::max<std::size_t>(1, all));
  return task.kind == GridTaskKind::checkerboard ? std::max(share, 1 - share) : share;
}

json study_damage(const Exec& ex, const AutomatonSubject& subject, double fire) {
  const GridTask& task = subject.task;
  const Block block = centre_block(task);
  const std::size_t steps = 2 * steps_for(subject, std::max(task.height, task.width), fire);
  Grid start = random_start(subject, task, 0);
  const auto target = expected(task, start, steps);
  circuit::Runner runner(ex, subject.rule, std::move(start), {.fire = fire, .seed = subject.seed});
  json dead = json::array(), repaired = json::array();
  for (std::size_t s = 0; s < steps; ++s) {
    change_block(runner, block, nullptr);
    runner.step();
    dead.push_back(accuracy_outside(task, target, runner.grid(), block));
  }
  change_block(runner, block, nullptr);
  json healed = nullptr;
  for (std::size_t s = 0; s < steps; ++s) {
    runner.step();
    const double best = phase_accuracy(task, target, runner.grid()).best();
    repaired.push_back(best);
    if (best < 1)
      healed = nullptr;
    else if (healed.is_null())
      healed = s + 1;
  }
  return {{"fire", fire},
          {"block", {{"row", block.y}, {"column", block.x}, {"height", block.height}, {"width", block.width}}},
          {"dead", {{"accuracy", dead.back()}, {"curve", dead}}},
          {"repaired", {{"accuracy", repaired.back()}, {"curve", repaired}, {"healed_after", healed}}}};
}

json study_endurance(const Exec& ex, const AutomatonSubject& subject) {
  const GridTask& task = subject.task;
  const std::size_t every = 2 * subject.steps;
  Grid start = random_start(subject, task, 0);
  const auto target = expected(task, start, subject.steps);
  circuit::Runner runner(ex, subject.rule, std::move(start), {.fire = subject.fire, .seed = subject.seed});
  const std::size_t h = std::max<std::size_t>(1, task.height / 4), w = std::max<std::size_t>(1, task.width / 4);
  std::size_t damages = 0, healed = 0;
  double worst = 1.0, last = 0.0;
  for (std::size_t s = every; s <= kEnduranceSteps; s += every) {
    runner.step(every);
    last = phase_accuracy(task, target, runner.grid()).best();
    worst = std::min(worst, last);
    ++damages;
    healed += last == 1.0;
    const RandomStream random(subject.seed, RandomUse::test, 1, static_cast<std::uint32_t>(s));
    const Block block{random.below(1u << 30, static_cast<std::uint32_t>(task.height - h + 1)),
                      random.below((1u << 30) + 1, static_cast<std::uint32_t>(task.width - w + 1)), h, w};
    change_block(runner, block, &random);
  }
  return {{"steps", kEnduranceSteps}, {"every", every}, {"damages", damages},
          {"healed", healed},         {"worst", worst}, {"accuracy", last}};
}

// A picture is stable as far as it stays: what counts is the worst step after those it was trained for.
json study_stability(const Exec& ex, const AutomatonSubject& subject) {
  const std::size_t steps = subject.steps + std::max(3 * subject.steps, kFurtherSteps);
  Grid start = random_start(subject, subject.task, 0);
  const auto target = expected(subject.task, start, subject.steps);
  circuit::Runner runner(ex, subject.rule, std::move(start), {.fire = subject.fire, .seed = subject.seed});
  json curve = json::array();
  double worst = 1.0, grown = 0.0;
  std::size_t kept = 0;  // steps since it was grown in which it was as good
  bool keeps = true;
  for (std::size_t s = 1; s <= steps; ++s) {
    runner.step();
    const double accuracy = phase_accuracy(subject.task, target, runner.grid()).same;
    curve.push_back(accuracy);
    if (s == subject.steps) grown = accuracy;
    if (s < subject.steps) continue;
    worst = std::min(worst, accuracy);
    keeps = keeps && accuracy >= grown;
    if (keeps) kept = s - subject.steps;
  }
  return {{"trained_steps", subject.steps},
          {"steps", steps},
          {"grown", grown},
          {"accuracy", worst},
          {"kept", kept},
          {"curve", curve}};
}

}  // namespace

PhaseAccuracy phase_accuracy(const GridTask& task, std::span<const std::uint8_t> target, const Grid& grid) {
  const std::size_t cells = task.height * task.width, planes = target.size() / cells;
  std::size_t same = 0;
  for (std::size_t c = 0; c < planes; ++c)
    for (std::size_t i = 0; i < cells; ++i)
      same += grid.get(static_cast<std::uint32_t>(c), i / task.width, i % task.width) == (target[c * cells + i] != 0);
  PhaseAccuracy a;
  a.same = static_cast<double>(same) / static_cast<double>(target.size());
  if (task.kind != GridTaskKind::checkerboard) return a;
  a.swapped = static_cast<double>(target.size() - same) / static_cast<double>(target.size());
  return a;
}

double shifted_accuracy(const GridTask& task, const Grid& grid) {
  const std::vector<std::uint8_t> cells = cells_of(grid);
  const std::size_t period = 2 * task.square;
  std::vector<std::uint8_t> colour(task.width);  // of the first row's columns
  std::size_t best = 0;
  for (std::size_t dx = 0; dx < period; ++dx) {
    for (std::size_t x = 0; x < task.width; ++x) colour[x] = (x + dx) / task.square & 1u;
    // Of each row: cells that are right when it begins with the first colour; the others are when with the second.
    std::vector<std::size_t> right(task.height, 0);
    for (std::size_t y = 0; y < task.height; ++y)
      for (std::size_t x = 0; x < task.width; ++x) right[y] += cells[y * task.width + x] == colour[x];
    for (std::size_t dy = 0; dy < period; ++dy) {
      std::size_t sum = 0;
      for (std::size_t y = 0; y < task.height; ++y)
        sum += (y + dy) / task.square & 1u ? task.width - right[y] : right[y];
      best = std::max(best, sum);
    }
  }
  return static_cast<double>(best) / static_cast<double>(cells.size());
}

template <class T>
Grid start_grid(const GridTask& task, const T* x) {
  Grid grid(static_cast<std::uint32_t>(task.channels), task.height, task.width);
  for (std::uint32_t c = 0; c < grid.channels(); ++c)
    for (std::size_t y = 0; y < task.height; ++y)
      for (std::size_t i = 0; i < task.width; ++i)
        if (x[(c * task.height + y) * task.width + i] != T(0)) grid.set(c, y, i, true);
  return grid;
}

template Grid start_grid(const GridTask&, const float*);
template Grid start_grid(const GridTask&, const double*);

std::vector<std::pair<std::size_t, std::size_t>> studied_sizes(std::size_t height, std::size_t width,
                                                               std::size_t channels) {
  constexpr std::size_t kMostBits = std::size_t{1} << 22;
  std::vector<std::pair<std::size_t, std::size_t>> sizes;
  for (const std::size_t factor : {1u, 2u, 4u})
    for (const std::size_t more : {0u, 1u}) {
      const std::size_t h = factor * height + more, w = factor * width + more;
      if (factor == 1 || h <= kMostBits / channels / w) sizes.emplace_back(h, w);
    }
  return sizes;
}

json study_automaton(const Exec& ex, const AutomatonSubject& subject) {
  json result = json::object();
  switch (subject.task.kind) {
    case GridTaskKind::life:
      result["neighbourhoods"] = right_neighbourhoods(ex, subject);
      result["sizes"] = study_sizes(ex, subject);
      break;
    case GridTaskKind::checkerboard: {
      result["sizes"] = study_sizes(ex, subject);
      const double fire = std::min(subject.fire, kAsynchronousFire);
      const std::size_t side = std::max(subject.task.height, subject.task.width);
      result["asynchronous"] = run_size(ex, subject, subject.task, steps_for(subject, side, fire), fire);
      result["damage"] = study_damage(ex, subject, subject.fire);
      result["endurance"] = study_endurance(ex, subject);
      break;
    }
    case GridTaskKind::picture:
      result["stability"] = study_stability(ex, subject);
      break;
  }
  return result;
}

}  // namespace gradloom
