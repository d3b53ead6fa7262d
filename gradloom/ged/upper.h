// Good mappings, quickly: upper bounds on the edit distance.
#pragma once

#include <cstdint>
#include <vector>

#include "gradloom/ged/deadline.h"
#include "gradloom/ged/problem.h"

namespace gradloom::ged {

// Both return images of the rows of the problem; problem.cost() says what they cost. Deterministic.

// Maps row after row, those with most edges first, each to the column that costs least at that moment; after the
// deadline edges are no longer looked at.
std::vector<std::uint32_t> greedy_mapping(const Problem& problem, const Deadline& deadline = {});

// Exchanges the images of two rows, or moves a row to a free column (or deletes it), as long as that helps; at most
// `rounds` passes over all pairs, none after the deadline. `image` is the start and the result; returns its cost.
Cost improve_by_swaps(const Problem& problem, std::vector<std::uint32_t>& image, unsigned rounds = 100,
                      const Deadline& deadline = {});

}  // namespace gradloom::ged
