#include "gradloom/ged/search.h"

#include <algorithm>

namespace gradloom::ged {
namespace {

constexpr std::size_t kTasks = 64;             // of a round; part of the definition of the result under a limit
constexpr std::uint64_t kFirstBudget = 4096;   // expansions of a task in the first round
constexpr std::uint64_t kLargestBudget = 65536;

// Costs of mappings are whole units, that is even numbers of steps: what reaches this cannot lead below `upper`.
Cost enough(Cost upper) { return upper - 1; }
Cost round_up(Cost steps) { return steps + (steps & 1); }

}  // namespace

bool Search::stopped(const Worker& w, Goal goal) const {
  return w.expanded >= w.budget || (goal == Goal::first && w.improved) || late_.load(std::memory_order_relaxed);
}

// The assignment of a node is a mapping; often a good one.
void Search::try_completion(Worker& w, const OpenNodes& node) const {
  for (const Step& step : w.path) w.candidate[step.row] = step.column < problem_->columns() ? step.column : kErased;
  for (std::uint32_t i : node.rows) {
    if (w.assigner.is_dummy_row(i)) break;
    const std::uint16_t j = node.row_match[i];
    w.candidate[i] = j < problem_->columns() ? j : kErased;
  }
  const Cost cost = problem_->cost(w.candidate);
  if (cost >= w.upper) return;
  w.upper = cost;
  w.image = w.candidate;
  w.improved = true;
}

// Chooses the row of a node with the fewest columns that may still pay, and lists them. False: nothing is left to try.
bool Search::open(Worker& w, std::size_t depth) const {
  Level& level = w.levels[depth];
  const OpenNodes& node = level.node;
  ++w.expanded;
  if ((w.expanded & 63) == 0 && deadline_ != std::chrono::steady_clock::time_point::max() &&
      std::chrono::steady_clock::now() >= deadline_)
    late_.store(true, std::memory_order_relaxed);
  try_completion(w, node);
  const Cost limit = enough(w.upper) - node.bound();
  level.children.clear();
  if (limit <= 0) return false;
  const auto twins = problem_->column_twins();
  // One of several columns that can be swapped is enough; of the dummy columns too.
  w.columns_left.clear();
  std::uint64_t seen_small = 0;
  std::vector<bool> seen_large;
  if (problem_->columns() > 64) seen_large.resize(problem_->columns());
  bool dummy = false;
  for (std::uint16_t j : node.columns) {
    if (w.assigner.is_dummy_column(j)) {
      if (!dummy) w.columns_left.push_back(j);
      dummy = true;
      continue;
    }
    const std::uint32_t t = twins[j];
    if (seen_large.empty() ? (seen_small >> t & 1) != 0 : bool{seen_large[t]}) continue;
    if (seen_large.empty())
      seen_small |= std::uint64_t{1} << t;
    else
      seen_large[t] = true;
    w.columns_left.push_back(j);
  }
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  Cost most_certain = -1;
  for (std::uint32_t i : node.rows) {
    if (w.assigner.is_dummy_row(i)) break;
    std::size_t count = 0;
    Cost total = 0;
    for (std::uint16_t j : w.columns_left) {
      const Cost r = w.assigner.reduced(node, i, j);
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
  for (std::uint16_t j : w.columns_left) {
    const Cost r = w.assigner.reduced(node, level.row, j);
    if (r < limit) level.children.push_back({node.bound() + r, j});
  }
  std::sort(level.children.begin(), level.children.end(), [](const Child& a, const Child& b) {
    return a.bound != b.bound ? a.bound > b.bound : a.column > b.column;
  });
  return !level.children.empty();
}

void Search::hand_back(Worker& w, std::size_t depth) const {
  for (std::size_t d = 0; d <= depth; ++d)
    for (const Child& child : w.levels[d].children) {
      if (child.bound >= enough(w.upper)) continue;
      Subtree s;
      s.bound = child.bound;
      const std::size_t known = w.path.size() - (depth - d);
      s.path.assign(w.path.begin(), w.path.begin() + static_cast<std::ptrdiff_t>(known));
      s.path.push_back({w.levels[d].row, child.column});
      w.leftover.push_back(std::move(s));
    }
}

void Search::descend(Worker& w, const Subtree& subtree, Goal goal) const {
  if (w.levels.size() < problem_->rows() + 2) w.levels.resize(problem_->rows() + 2);
  w.path.clear();
  // Level 0 holds the node at the end of the subtree's path; level 1 serves as scratch on the way there.
  w.assigner.root(w.levels[0].node);
  for (const Step& step : subtree.path) {
    if (!w.assigner.child(w.levels[0].node, step.row, step.column, enough(w.upper), w.levels[1].node)) return;
    std::swap(w.levels[0].node, w.levels[1].node);
    w.path.push_back(step);
  }
  if (!open(w, 0)) return;
  const std::size_t base = w.path.size();
  for (std::size_t depth = 0;;) {
    if (stopped(w, goal)) return hand_back(w, depth);
    Level& level = w.levels[depth];
    if (level.children.empty()) {
      if (depth == 0) return;
      --depth;
      w.path.resize(base + depth);
      continue;
    }
    const Child child = level.children.back();
    level.children.pop_back();
    if (child.bound >= enough(w.upper)) {
      level.children.clear();  // the others are no better
      continue;
    }
    if (!w.assigner.child(level.node, level.row, child.column, enough(w.upper), w.levels[depth + 1].node)) continue;
    w.path.push_back({level.row, child.column});
    if (open(w, depth + 1))
      ++depth;
    else
      w.path.pop_back();
  }
}

void Search::task(Worker& w, std::vector<Subtree*> subtrees, Goal goal) const {
  w.candidate.resize(problem_->rows());
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
  late_ = false;
  SearchResult result;
  result.upper = upper;
  std::vector<Subtree> open(1);
  std::uint64_t left = limits.expansions, budget = kFirstBudget;
  while (!open.empty() && left > 0 && !late_ && !(goal == Goal::first && !result.image.empty())) {
    const std::size_t tasks = std::min(open.size(), kTasks);
    if (workers_.size() < tasks) workers_.resize(tasks);
    const std::uint64_t each = std::max<std::uint64_t>(1, std::min(budget, left / tasks));
    const std::size_t active = std::min<std::size_t>(tasks, left);
    const auto body = [&](std::size_t t, unsigned) {
      Worker& w = workers_[t];
      w.assigner.set(problem);
      w.upper = result.upper;
      w.budget = t < active ? each : 0;
      std::vector<Subtree*> mine;
      for (std::size_t s = t; s < open.size(); s += tasks) mine.push_back(&open[s]);
      task(w, std::move(mine), goal);
    };
    if (ex != nullptr && tasks > 1)
      ex->parallel_for(tasks, body);
    else
      for (std::size_t t = 0; t < tasks; ++t) body(t, 0);
    std::vector<Subtree> next;
    for (std::size_t t = 0; t < tasks; ++t) {
      Worker& w = workers_[t];
      result.expanded += w.expanded;
      left -= std::min(left, w.expanded);
      if (w.improved && w.upper < result.upper) {
        result.upper = w.upper;
        result.image = w.image;
      }
      for (Subtree& s : w.leftover) next.push_back(std::move(s));
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
