// Exact resubstitution in networks of few inputs: every signal is a whole truth table, so what may replace what is
// known.
#pragma once

#include <cstdint>

#include "gradloom/circuit/network.h"

namespace gradloom::circuit {

inline constexpr std::uint32_t kMaxTableInputs = 12;

struct ResubstituteOptions {
  // Of the random walk over networks of equal size that follows once no single replacement saves a gate.
  std::uint32_t moves = 1000;
  std::uint64_t seed = 0;
};

// The same function with no more gates. A gate is replaced by a signal, by one gate or by two gates of signals that do
// not depend on it, wherever an output could not notice (all its don't-cares are used), if that frees at least as many.
// Precondition: net.inputs() <= kMaxTableInputs. The result is a function of net and options alone.
Network resubstitute(const Network& net, const ResubstituteOptions& options);

}  // namespace gradloom::circuit
