// Deal: processes that make the same search together, each of them some of its candidates.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace gradloom::formula {

// What came of a candidate.
struct Outcome {
  double work = 0.0;
  std::uint64_t found = 0;  // or 1
};

// Candidate i of a batch is that of rank i % ranks. The result does not depend on ranks.
struct Deal {
  unsigned rank = 0, ranks = 1;
  std::function<void(std::span<Outcome> batch)> exchange = {};  // fills in those of the other ranks; all call it
};

}  // namespace gradloom::formula
