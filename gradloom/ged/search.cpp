#include "gradloom/ged/search.h"

#include <algorithm>

namespace gradloom::ged {
namespace {

constexpr std::size_t kTasks = 64;            // of a round; part of the definition of the result under a limit
constexpr std::uint64_t kFirstBudget = 4096;  // expansions of a task in the first round
constexpr std::uint64_t kLargestBudget = 65536;
constexpr double kMostBytes = 1e9;  // of the matrices of one thread

// Costs of mappings are whole units, that is even numbers of steps: what reaches this cannot lead below `upper`.
Cost enough(Cost upper) { return upper - 1; }
Cost round_up(Cost steps) { return steps + (steps & 1); }

}  // namespace

bool Search::stopped(const Task& w, Goal goal) const {
  return w.expanded >= w.budget || (goal == Goal::first && w.improved) || late_.load(std::memory_order_relaxed);
}

// The assignment of a node is a mapping; often a good one.
void Search::try_completion(Task& w, const OpenNodes& node) const {
  for (const Step& step : w.scratch->path)
    w.scratch->candidate[step.row] = step.column < problem_->columns() ? step.column : kErased;
  for (std::uint32_t i : node.rows) {
    if (w.scratch->assigner.is_dummy_row(i)) break;
    const std::uint16_t j = node.row_match[i];
    w.scratch->candidate[i] = j < problem_->columns() ? j : kErased;
  }
  const Cost cost = problem_->cost(w.scratch->candidate);
  if (cost >= w.upper) return;
  w.upper = cost;
  w.image = w.scratch->candidate;
  w.improved = true;
}

// Chooses the row of a node with the fewest columns that may still pay, and lists them. False: nothing is left to try.
bool Search::open(Task& w, std::size_t depth) const {
  Level& level = w.scratch->levels[depth];
  const OpenNodes& node = level.node;
  ++w.expanded;
  if ((w.expanded & 63) == 0 && deadline_.passed()) late_.store(true, std::memory_order_relaxed);
  try_completion(w, node);
  const Cost limit = enough(w.upper) - node.bound();
  level.children.clear();
  if (limit <= 0) return false;
  const auto twins = problem_->column_twins();
  // One of several columns that can be swapped is enough; of the dummy columns too.
  w.scratch->columns_left.clear();
  std::vector<bool>& seen = w.scratch->seen;
  seen.assign(problem_->columns(), false);
  bool dummy = false;
  for (std::uint16_t j : node.columns) {
    if (w.scratch->assigner.is_dummy_column(j)) {
      if (!dummy) w.scratch->columns_left.push_back(j);
      dummy = true;
      continue;
    }
    const std::uint32_t t = twins[j];
    if (seen[t]) continue;
    seen[t] = true;
    w.scratch->columns_left.push_back(j);
  }
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  Cost most_certain = -1;
  for (std::uint32_t i : node.rows) {
    if (w.scratch->assigner.is_dummy_row(i)) break;
    std::size_t count = 0;
    Cost total = 0;
    for (std::uint16_t j : w.scratch->columns_left) {
      const Cost r = w.scratch->assigner.reduced(node, i, j);
      count += r < limit;
      total += std::min(r, limit);
    }
    if (count < fewest || (count == fewest && total > most_certain)) {
      fewest = count;
      most_certain = total;
      level.row = static_cast<std::uint16_t>(i);
    }
  }
  if (fewest == std::numeric_limits<std::size_t>::max()) return false;  // a leaf; its mapping was tried above
  for (std::uint16_t j : w.scratch->columns_left) {
    const Cost r = w.scratch->assigner.reduced(node, level.row, j);
    if (r < limit) level.children.push_back({node.bound() + r, j});
  }
  std::sort(level.children.begin(), level.children.end(), [](const Child& a, const Child& b) {
    return a.bound != b.bound ? a.bound > b.bound : a.column > b.column;
  });
  return !level.children.empty();
}

void Search::hand_back(Task& w, std::size_t depth) const {
  for (std::size_t d = 0; d <= depth; ++d)
    for (const Child& child : w.scratch->levels[d].children) {
      if (child.bound >= enough(w.upper)) continue;
      Subtree s;
      s.bound = child.bound;
      const std::size_t known = w.scratch->path.size() - (depth - d);
      s.path.assign(w.scratch->path.begin(), w.scratch->path.begin() + static_cast<std::ptrdiff_t>(known));
      s.path.push_back({w.scratch->levels[d].row, child.column});
      w.leftover.push_back(std::move(s));
    }
}

void Search::descend(Task& w, const Subtree& subtree, Goal goal) const {
  if (w.scratch->levels.size() < problem_->rows() + 2) w.scratch->levels.resize(problem_->rows() + 2);
  w.scratch->path.clear();
  // Level 0 holds the node at the end of the subtree's path; level 1 serves as scratch on the way there.
  if (!w.scratch->assigner.root(w.scratch->levels[0].node, deadline_)) {
    late_.store(true, std::memory_order_relaxed);
    w.leftover.push_back({std::max(subtree.bound, w.scratch->levels[0].node.bound()), subtree.path});
    return;
  }
  for (const Step& step : subtree.path) {
    if (!w.scratch->assigner.child(w.scratch->levels[0].node, step.row, step.column, enough(w.upper),
                                   w.scratch->levels[1].node))
      return;
    std::swap(w.scratch->levels[0].node, w.scratch->levels[1].node);
    w.scratch->path.push_back(step);
  }
  if (!open(w, 0)) return;
  const std::size_t base = w.scratch->path.size();
  for (std::size_t depth = 0;;) {
    if (stopped(w, goal)) return hand_back(w, depth);
    Level& level = w.scratch->levels[depth];
    if (level.children.empty()) {
      if (depth == 0) return;
      --depth;
      w.scratch->path.resize(base + depth);
      continue;
    }
    const Child child = level.children.back();
    level.children.pop_back();
    if (child.bound >= enough(w.upper)) {
      level.children.clear();  // the others are no better
      continue;
    }
    if (!w.scratch->assigner.child(level.node, level.row, child.column, enough(w.upper),
                                   w.scratch->levels[depth + 1].node))
      continue;
    w.scratch->path.push_back({level.row, child.column});
    if (open(w, depth + 1))
      ++depth;
    else
      w.scratch->path.pop_back();
  }
}

void Search::run_task(Task& w, std::vector<Subtree*> subtrees, Goal goal) const {
  w.scratch->candidate.resize(problem_->rows());
  w.leftover.clear();
  w.expanded = 0;
  w.improved = false;
  for (Subtree* s : subtrees) {
    if (s->bound >= enough(w.upper)) continue;
    if (stopped(w, goal))
      w.leftover.push_back(std::move(*s));
    else
      descend(w, *s, goal);
  }
}

SearchResult Search::run(const Exec* ex, const Problem& problem, Cost upper, Goal goal, const SearchLimits& limits) {
  problem_ = &problem;
  deadline_ = limits.deadline;
  late_ = deadline_.asked();
  scratch_.resize(std::max<std::size_t>(scratch_.size(), ex == nullptr ? 1 : ex->threads()));
  SearchResult result;
  result.upper = upper;
  std::vector<Subtree> open(1);
  std::uint64_t left = limits.expansions, budget = kFirstBudget;
  // Every node on the way down has a matrix. Where these would not fit, the root alone is opened: bounds, and no
  // search.
  const double side = problem.full() ? problem.columns() : problem.rows() + problem.columns();
  if (side * (problem.rows() + 1.0) * (problem.rows() + 2.0) * sizeof(Cost) > kMostBytes)
    left = std::min<std::uint64_t>(left, 1);
  while (!open.empty() && left > 0 && !late_ && !(goal == Goal::first && !result.image.empty())) {
    const std::size_t tasks = std::min(open.size(), kTasks);
    if (tasks_.size() < tasks) tasks_.resize(tasks);
    const std::uint64_t each = std::max<std::uint64_t>(1, std::min(budget, left / tasks));
    const std::size_t active = std::min<std::size_t>(tasks, left);
    const auto body = [&](std::size_t t, unsigned worker) {
      Task& w = tasks_[t];
      w.scratch = &scratch_[worker];
      w.scratch->assigner.set(problem);
      w.upper = result.upper;
      w.budget = t < active ? each : 0;
      std::vector<Subtree*> mine;
      for (std::size_t s = t; s < open.size(); s += tasks) mine.push_back(&open[s]);
      run_task(w, std::move(mine), goal);
    };
    if (ex != nullptr && tasks > 1)
      ex->parallel_for(tasks, body);
    else
      for (std::size_t t = 0; t < tasks; ++t) body(t, 0);
    std::vector<Subtree> next;
    for (std::size_t t = 0; t < tasks; ++t) {
      const Task& w = tasks_[t];
      result.expanded += w.expanded;
      left -= std::min(left, w.expanded);
      if (w.improved && w.upper < result.upper) {
        result.upper = w.upper;
        result.image = w.image;
      }
      for (Subtree& s : tasks_[t].leftover) next.push_back(std::move(s));
    }
    std::erase_if(next, [&](const Subtree& s) { return s.bound >= enough(result.upper); });
    std::stable_sort(next.begin(), next.end(), [](const Subtree& a, const Subtree& b) { return a.bound < b.bound; });
    open = std::move(next);
    budget = std::min(budget * 2, kLargestBudget);
  }
  result.lower = result.upper;
  for (const Subtree& s : open) result.lower = std::min(result.lower, round_up(s.bound));
  result.complete = open.empty() || (goal == Goal::first && !result.image.empty());
  return result;
}

}  // namespace gradloom::ged
