// One pair of graphs after another, with memory that is used again.
#pragma once

#include "gradloom/ged/search.h"

namespace gradloom::ged {

// An answer in steps. `image` maps rows of the problem.
struct PairAnswer {
  Cost lower = 0, upper = 0;
  bool smallest = false;
  std::vector<std::uint32_t> image;
  std::uint64_t expanded = 0;
  bool exact() const { return lower == upper; }
};

class PairSolver {
 public:
  const Problem& set(const DenseGraph& first, const DenseGraph& second, const CostTable& costs) {
    problem_.set(first, second, costs);
    return problem_;
  }
  // The distance of the pair that was set, or a bracket around it.
  PairAnswer solve(const Exec* ex, const SearchLimits& limits);
  // A mapping of at most this cost, or a lower bound above it; or, at a limit, neither.
  PairAnswer decide(const Exec* ex, const SearchLimits& limits, Cost threshold);
  // Replaces the mapping of an exact answer by the lexicographically smallest of the first graph that costs as much.
  void make_smallest(const Exec* ex, const SearchLimits& limits, PairAnswer& answer);

 private:
  PairAnswer first_answer(const SearchLimits& limits);
  static void take(const SearchResult& found, PairAnswer& answer);

  Problem problem_;
  Search search_;
};

}  // namespace gradloom::ged
