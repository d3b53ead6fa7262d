#include "gradloom/ged/pair_solver.h"

#include <algorithm>

#include "gradloom/ged/upper.h"

namespace gradloom::ged {

PairAnswer PairSolver::first_answer(const SearchLimits& limits) {
  PairAnswer answer;
  answer.image = greedy_mapping(problem_, limits.deadline);
  // A pass is cubic: large graphs get few.
  const unsigned rounds = problem_.rows() <= 64 ? 100 : problem_.rows() <= 512 ? 5 : 1;
  answer.upper = improve_by_swaps(problem_, answer.image, rounds, limits.deadline);
  return answer;
}

void PairSolver::take(const SearchResult& found, PairAnswer& answer) {
  answer.expanded = found.expanded;
  answer.lower = found.lower;
  if (found.image.empty()) return;
  answer.image = found.image;
  answer.upper = found.upper;
}

PairAnswer PairSolver::solve(const Exec* ex, const SearchLimits& limits) {
  PairAnswer answer = first_answer(limits);
  take(search_.run(ex, problem_, answer.upper, Goal::best, limits), answer);
  return answer;
}

PairAnswer PairSolver::decide(const Exec* ex, const SearchLimits& limits, Cost threshold) {
  PairAnswer answer = first_answer(limits);
  if (answer.upper <= threshold) return answer;
  // Costs are even: a mapping that is cheaper than this costs the threshold at most.
  const SearchResult found = search_.run(ex, problem_, threshold + 2, Goal::first, limits);
  take(found, answer);
  if (!found.image.empty()) answer.lower = 0;  // the rest of the tree was not looked at
  return answer;
}

// Node after node of the first graph, the smallest image is sought that an optimal mapping can still have. The mapping
// at hand answers many of these questions; a search answers the others.
void PairSolver::make_smallest(const Exec* ex, const SearchLimits& limits, PairAnswer& answer) {
  Problem& p = problem_;
  const bool swapped = p.swapped();
  const std::uint32_t n1 = swapped ? p.columns() : p.rows(), n2 = swapped ? p.rows() : p.columns();
  Mapping known = p.to_first(answer.image);
  std::uint64_t left = limits.expansions > answer.expanded ? limits.expansions - answer.expanded : 0;
  std::vector<bool> used(n2);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> fixed;  // (node of the first graph, image)
  const auto forbid = [&](std::uint32_t a, std::uint32_t b) {
    if (!swapped)
      p.forbid(a, b);
    else if (b != kErased)
      p.forbid(b, a);
  };
  const auto force = [&](std::uint32_t a, std::uint32_t b) {
    for (std::uint32_t other = 0; other < n2; ++other)
      if (other != b) forbid(a, other);
    if (b == kErased) return;
    forbid(a, kErased);
    for (std::uint32_t other = 0; other < n1; ++other)
      if (other != a) forbid(other, b);
    if (swapped) p.forbid(b, kErased);
  };
  bool finished = true;
  for (std::uint32_t a = 0; a < n1 && finished; ++a) {
    for (std::uint32_t b = 0; b < n2 && b < known[a]; ++b) {
      if (used[b]) continue;
      for (const auto& [x, y] : fixed) force(x, y);
      force(a, b);
      p.refresh();
      const SearchResult found =
          search_.run(ex, p, answer.upper + 2, Goal::first, {.expansions = left, .deadline = limits.deadline});
      p.clear_forbidden();
      answer.expanded += found.expanded;
      left -= std::min(left, found.expanded);
      if (!found.image.empty()) {
        answer.image = found.image;
        known = p.to_first(found.image);
        break;
      }
      if (!found.complete) finished = false;
      if (!finished) break;
    }
    fixed.emplace_back(a, known[a]);
    if (known[a] != kErased) used[known[a]] = true;
  }
  answer.smallest = finished;
}

}  // namespace gradloom::ged
