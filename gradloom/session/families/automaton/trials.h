// What is asked of a hard automaton before its training may end: the starts, the accidents and the deadlines.
#pragma once

#include <vector>

#include "gradloom/models/logic/trial.h"
#include "gradloom/session/families/automaton/study.h"

namespace gradloom {

// S is subject.steps, after which a rule is judged. A checkerboard must stand after S, 2 S, 3 S and 4 S steps; when a
// quarter of the cells of the starts fire with probability 0.6, after 4 S; outside of a dead block, which lies anywhere
// but at the edge, after 2 S, and everywhere 2 S after the block's repair. A rule that was trained with cells that
// fire at random is asked the same with such cells. All other tasks must be done after S steps.
// A checkerboard with a side above 64 is tried on a smaller grid of the same parity.
// The starts are those of `part` in `epoch`: a checkerboard gets 64; other tasks `starts` of them, 64 in a trial.
std::vector<logic::Trial> make_trials(const AutomatonSubject& subject, GridPart part, std::uint64_t epoch,
                                      std::size_t starts);

// A checkerboard also of two and four times the side, after two and four times the steps; other tasks: true.
bool holds_on_larger_grids(const Exec& ex, const AutomatonSubject& subject, GridPart part, std::uint64_t epoch);

}  // namespace gradloom
