#include "gradloom/ged/ged.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>

#include "gradloom/base/rounding.h"
#include "gradloom/ged/best_first.h"
#include "gradloom/ged/pair_solver.h"

namespace gradloom::ged {
namespace {

using Clock = std::chrono::steady_clock;

Deadline deadline_after(double seconds, const std::atomic<bool>* stop = nullptr) {
  // Longer than a century is never.
  if (!(seconds < 3e9)) return {Clock::time_point::max(), stop};
  return {
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::max(seconds, 0.0))),
      stop};
}

Labels labels_of(const CostTable& costs) { return costs.labels_matter() ? Labels::compare : Labels::ignore; }

// Pairs that need more expansions than this are solved later, with all threads on one pair.
constexpr std::uint64_t kEasyExpansions = 20000;
constexpr std::size_t kPairsOfATask = 32;
constexpr std::uint32_t kBestFirstNodes = 64;

// A search that was cut short may know less than the counts of labels say.
double lower_bound(const PairAnswer& answer, const Graph& first, const Graph& second, const CostTable& costs) {
  const double found = costs.value(answer.lower);
  if (answer.exact()) return found;
  return std::min(costs.value(answer.upper), std::max(found, label_bound(first, second, costs)));
}

Cost threshold_steps(const Options& options, const CostTable& costs) {
  if (!options.threshold) return 0;
  if (!(*options.threshold >= 0))
    throw_invalid(fmt::format("the threshold is {}; distances are 0 or more", *options.threshold));
  if (options.solver != Solver::depth_first)
    throw Exception(ErrorCode::unsupported, "a threshold needs the solver dfs; best-first has none");
  return costs.steps_within(*options.threshold);
}

}  // namespace

Distance edit_distance(const Exec& ex, const Graph& first, const Graph& second, const CostTable& costs,
                       const Options& options) {
  const auto start = Clock::now();
  const SearchLimits limits{.expansions = options.limits.expansions,
                            .deadline = deadline_after(options.limits.seconds, options.stop)};
  if (options.solver == Solver::best_first && std::min(first.nodes(), second.nodes()) > kBestFirstNodes)
    throw Exception(
        ErrorCode::unsupported,
        fmt::format("the solver best-first needs one graph of at most {} nodes; use the solver dfs", kBestFirstNodes));
  const DenseGraph a(first, labels_of(costs)), b(second, labels_of(costs));
  PairSolver solver;
  const Problem& problem = solver.set(a, b, costs);
  const Cost threshold = threshold_steps(options, costs);
  PairAnswer answer = options.solver == Solver::best_first ? solve_best_first(problem, limits)
                      : options.threshold                  ? solver.decide(&ex, limits, threshold)
                                                           : solver.solve(&ex, limits);
  if (answer.exact() && !options.threshold && options.ties == Ties::smallest) solver.make_smallest(&ex, limits, answer);
  Distance d;
  d.lower = lower_bound(answer, first, second, costs);
  d.upper = costs.value(answer.upper);
  d.exact = d.lower == d.upper;
  if (options.threshold && answer.upper <= threshold) d.within = true;
  if (options.threshold && d.lower > *options.threshold) d.within = false;
  d.smallest = answer.smallest;
  d.mapping = problem.to_first(answer.image);
  d.expanded = answer.expanded;
  d.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return d;
}

double assignment_bound(const Graph& first, const Graph& second, const CostTable& costs, double seconds) {
  const Deadline deadline = deadline_after(seconds);
  const DenseGraph a(first, labels_of(costs)), b(second, labels_of(costs));
  Problem problem;
  problem.set(a, b, costs);
  Assigner assigner;
  assigner.set(problem);
  OpenNodes root;
  assigner.root(root, deadline);
  return costs.value(root.bound() + (root.bound() & 1));
}

namespace {

constexpr unsigned kCaller = 0;  // the worker of a parallel loop that is the thread of the caller

bool is_stopped(const AllPairsOptions& options) { return options.stop && *options.stop; }

// Counts what all threads have done, and tells it on the thread of the caller, who hears no more after a stop.
class PairProgress {
 public:
  PairProgress(const AllPairsOptions& options, std::size_t total) : options_(options), total_(total) {}
  void add(std::size_t more, unsigned worker) {
    done_ += more;
    if (worker == kCaller) tell();
  }
  // What was told already is not told again.
  void tell() {
    const std::size_t now = done_;
    if (options_.progress && now != told_ && !is_stopped(options_)) options_.progress(now, total_);
    told_ = now;
  }

 private:
  const AllPairsOptions& options_;
  std::size_t total_, told_ = 0;
  std::atomic<std::size_t> done_ = 0;
};

SearchLimits limits_now(const AllPairsOptions& options) {
  return {.expansions = options.limits.expansions, .deadline = deadline_after(options.limits.seconds, options.stop)};
}

enum class Known { nothing, all_hard };

// Distances of the pairs pair_of(0), pair_of(1), ....
PairDistances solve_pairs(const Exec& ex, const GraphSet& set, const CostTable& costs, const AllPairsOptions& options,
                          std::size_t total, const std::function<PairOfGraphs(std::size_t)>& pair_of,
                          Known known = Known::nothing) {
  PairDistances r;
  r.lower.resize(total);
  r.upper.resize(total);
  r.expanded.resize(total);
  std::vector<DenseGraph> dense;
  for (const Graph& g : set.graphs) dense.emplace_back(g, labels_of(costs));
  std::vector<PairSolver> solvers(ex.threads());
  std::vector<char> hard(total, known == Known::all_hard);
  PairProgress progress(options, total);

  const auto solve = [&](std::size_t at, PairSolver& solver, const Exec* inside, std::uint64_t most) {
    const auto [first, second] = pair_of(at);
    solver.set(dense[first], dense[second], costs);
    SearchLimits limits = limits_now(options);
    limits.expansions = std::min(most, limits.expansions);
    const PairAnswer answer = solver.solve(inside, limits);
    r.upper[at] = costs.value(answer.upper);
    r.lower[at] = lower_bound(answer, set.graphs[first], set.graphs[second], costs);
    r.expanded[at] = answer.expanded;
    return r.lower[at] == r.upper[at];
  };
  const std::size_t tasks = known == Known::all_hard ? 0 : divide_up(total, kPairsOfATask);
  ex.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
    const std::size_t begin = task * kPairsOfATask, end = std::min(total, begin + kPairsOfATask);
    std::size_t finished = 0;
    for (std::size_t at = begin; at < end; ++at) {
      hard[at] = !solve(at, solvers[worker], nullptr, kEasyExpansions) && options.limits.expansions > kEasyExpansions;
      finished += hard[at] == 0;
    }
    progress.add(finished, worker);
  });
  progress.tell();
  for (std::size_t at = 0; at < total; ++at) {
    if (!hard[at]) continue;
    if (options.leave_hard) {
      r.hard.push_back(at);
    } else if (known == Known::all_hard || !is_stopped(options)) {  // after a stop, the first search has the bounds
      solve(at, solvers[0], &ex, std::numeric_limits<std::uint64_t>::max());
      progress.add(1, kCaller);
    }
  }
  for (std::size_t at = 0; at < total; ++at) r.exact += r.lower[at] == r.upper[at];
  return r;
}

}  // namespace

PairOfGraphs AllPairs::of(std::size_t pair) {
  auto i = static_cast<std::size_t>((1.0 + std::sqrt(1.0 + 8.0 * static_cast<double>(pair))) / 2.0);
  while (at(i, 0) > pair) --i;
  while (at(i + 1, 0) <= pair) ++i;
  return {pair - at(i, 0), i};
}

AllPairs all_pairs(const Exec& ex, const GraphSet& set, const CostTable& costs, const AllPairsOptions& options) {
  const std::size_t total = set.size() < 2 ? 0 : AllPairs::at(set.size(), 0);
  return {solve_pairs(ex, set, costs, options, total, AllPairs::of), set.size()};
}

CrossPairs cross_pairs(const Exec& ex, const GraphSet& set, std::size_t rows, const CostTable& costs,
                       const AllPairsOptions& options) {
  if (rows > set.size())
    throw_invalid(fmt::format("{} graphs are to be compared with the others, but there are only {}", rows, set.size()));
  const std::size_t columns = set.size() - rows;
  const auto pair_of = [=](std::size_t at) { return PairOfGraphs(at / columns, rows + at % columns); };
  return {solve_pairs(ex, set, costs, options, rows * columns, pair_of), rows, columns};
}

PairDistances hard_pairs(const Exec& ex, const GraphSet& set, std::span<const PairOfGraphs> pairs,
                         const CostTable& costs, const AllPairsOptions& options) {
  const auto pair_of = [=](std::size_t at) { return pairs[at]; };
  return solve_pairs(ex, set, costs, options, pairs.size(), pair_of, Known::all_hard);
}

std::vector<Found> search(const Exec& ex, const GraphSet& set, std::size_t query, const CostTable& costs,
                          double threshold, const AllPairsOptions& options) {
  if (query >= set.size())
    throw_invalid(fmt::format("the query is graph {}, but there are {}, counted from 0", query, set.size()));
  const Cost most = threshold_steps({.threshold = threshold}, costs);
  std::vector<DenseGraph> dense;
  for (const Graph& g : set.graphs) dense.emplace_back(g, labels_of(costs));
  std::vector<PairSolver> solvers(ex.threads());
  std::vector<std::optional<Found>> all(set.size());
  PairProgress progress(options, set.size());
  ex.parallel_for(set.size(), [&](std::size_t i, unsigned worker) {
    const Graph &first = set.graphs[query], &second = set.graphs[i];
    if (i == query || label_bound(first, second, costs) > threshold) return progress.add(1, worker);
    const SearchLimits limits = limits_now(options);
    PairSolver& solver = solvers[worker];
    solver.set(dense[query], dense[i], costs);
    PairAnswer answer = solver.decide(nullptr, limits, most);
    const bool within = answer.upper <= most;
    if (within) answer = solver.solve(nullptr, limits);
    if (answer.lower <= most)
      all[i] = Found{i, lower_bound(answer, first, second, costs), costs.value(answer.upper), within};
    progress.add(1, worker);
  });
  progress.tell();
  std::vector<Found> found;
  for (const auto& one : all)
    if (one) found.push_back(*one);
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.within != b.within ? a.within : a.upper < b.upper; });
  return found;
}

}  // namespace gradloom::ged
