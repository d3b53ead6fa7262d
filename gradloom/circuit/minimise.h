// Makes circuits smaller by searching. The function never changes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradloom/circuit/circuit.h"
#include "gradloom/circuit/validate.h"

namespace gradloom::circuit {

struct MinimiseOptions {
  std::uint32_t moves = 10000;  // of each random walk, for a circuit of few inputs and gates; larger ones get fewer
  std::uint32_t walks = 3;      // from the same start; the smallest circuit wins
  std::uint32_t rounds = 3;     // over all windows of a circuit of many inputs, at most
  std::uint64_t seed = 0;
};

struct MinimiseStep {
  std::string name;
  CircuitSize size;  // after it
};

struct Minimised {
  Circuit circuit;
  std::vector<MinimiseStep> steps;  // "given", "simplified", then what was done
};

// Simplifies, then replaces gates by what the rest of the circuit offers (see resubstitute.h): in the whole circuit
// when its outputs depend on few inputs, else in windows of few inputs, which see only the don't-cares inside. The
// result is a function of circuit and options alone. Throws Exception(invalid_input) where validate() fails.
Minimised minimise(const Circuit& circuit, const MinimiseOptions& options = {});

}  // namespace gradloom::circuit
