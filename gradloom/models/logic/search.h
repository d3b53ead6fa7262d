// Local search over the hard gates of an automaton: repairs a circuit that is almost right.
#pragma once

#include <span>

#include "gradloom/models/logic/automaton.h"
#include "gradloom/models/logic/trial.h"

namespace gradloom::logic {

struct SearchOptions {
  std::size_t mutants = 10000;  // at most, up to the end of a round
  std::uint64_t seed = 0;
  double hopeless = 0.3;  // share of wrong bits above which nothing is tried
};

struct SearchReport {
  std::uint64_t before = 0, after = 0;  // wrong bits of the trials
  std::size_t mutants = 0;              // that were tried
};

// Where the logits of each gate of harden(automaton) lie in the parameters.
template <class T>
std::vector<std::uint32_t> logits_of_gates(const Automaton<T>& automaton);

// Changes the function of a gate or two at a time, and keeps what leaves no more bits wrong on the trials; ends when
// none are. Gates that matter are drawn evenly; functions with a large logit come more often. The parameters follow:
// in every gate the logit of the function that it has now is raised far above the others, so that the soft circuit
// computes what the hard one does. Mutants
// share a word: a few starts each first; the best of a round are tried on all. What comes out depends on the arguments
// alone, not on the threads.
template <class T>
SearchReport search_gates(const Exec& ex, const Automaton<T>& automaton, const std::vector<Trial>& trials,
                          const SearchOptions& options, std::span<const T> buffers, std::span<T> parameters);

}  // namespace gradloom::logic
