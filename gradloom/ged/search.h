// Depth-first branch and bound over the mappings of one problem, in rounds that do not depend on the number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "gradloom/exec/exec.h"
#include "gradloom/ged/assignment.h"
#include "gradloom/ged/deadline.h"
#include "gradloom/ged/problem.h"

namespace gradloom::ged {

struct SearchLimits {
  std::uint64_t expansions = std::numeric_limits<std::uint64_t>::max();  // nodes of the tree that may be opened
  Deadline deadline;
};

enum class Goal {
  best,   // a cheapest mapping
  first,  // any mapping cheaper than the bound given
};

struct SearchResult {
  Cost upper = kForbidden;           // of `image`; the bound given when nothing cheaper was found
  Cost lower = 0;                    // no mapping is cheaper than this
  std::vector<std::uint32_t> image;  // of the rows; empty when nothing cheaper was found
  std::uint64_t expanded = 0;
  bool complete = false;  // the whole tree was searched (or, for Goal::first, a mapping was found)
};

// Searches the mappings that cost less than `upper`. The tree is searched in rounds: the open subtrees, ordered by
// bound, are dealt to a fixed number of tasks; a task knows the best cost of the rounds before and its own, and hands
// back what it did not finish. Everything but the effect of the deadline is therefore the same for any number of
// threads. `ex` may be null: one thread.
class Search {
 public:
  SearchResult run(const Exec* ex, const Problem& problem, Cost upper, Goal goal, const SearchLimits& limits);

 private:
  struct Step {
    std::uint16_t row, column;
  };
  struct Subtree {
    Cost bound = 0;
    std::vector<Step> path;
  };
  struct Child {
    Cost bound;
    std::uint16_t column;
  };
  struct Level {
    OpenNodes node;
    std::vector<Child> children;  // the next one last
    std::uint16_t row = 0;
  };
  // Memory of a thread: the nodes on the way from the root to the node at hand.
  struct Scratch {
    Assigner assigner;
    std::vector<Level> levels;
    std::vector<Step> path;
    std::vector<std::uint32_t> candidate;
    std::vector<std::uint16_t> columns_left;
    std::vector<bool> seen;
  };
  // What one task is given and gives back.
  struct Task {
    Scratch* scratch = nullptr;
    std::vector<std::uint32_t> image;
    std::vector<Subtree> leftover;
    Cost upper = 0;
    std::uint64_t expanded = 0, budget = 0;
    bool improved = false;
  };

  void run_task(Task& w, std::vector<Subtree*> subtrees, Goal goal) const;
  void descend(Task& w, const Subtree& subtree, Goal goal) const;
  bool open(Task& w, std::size_t depth) const;
  void try_completion(Task& w, const OpenNodes& node) const;
  void hand_back(Task& w, std::size_t depth) const;
  bool stopped(const Task& w, Goal goal) const;

  const Problem* problem_ = nullptr;
  Deadline deadline_;
  mutable std::atomic<bool> late_ = false;
  std::vector<Scratch> scratch_;
  std::vector<Task> tasks_;
};

}  // namespace gradloom::ged
