// Proofs that two circuits are equal: output by output, with the method that was used.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/circuit/circuit.h"
#include "gradloom/exec/exec.h"

namespace gradloom::circuit {

enum class ProofMethod {
  exhaustive,  // every assignment of the inputs that the output depends on was tried in both
  structural,  // both became the same gates once constants were folded and equal gates shared
  sat,         // a solver found no assignment that tells them apart
  random,      // only random assignments were tried: tested, not proved
};

const char* method_name(ProofMethod method);  // "exhaustive", ...

struct OutputProof {
  ProofMethod method = ProofMethod::random;
  std::uint32_t inputs = 0;       // that the output depends on in either circuit, by structure
  std::uint64_t assignments = 0;  // tried; 0 where the method tries none
  bool equal = false;
  bool proved() const { return equal && method != ProofMethod::random; }
};

struct CounterExample {
  std::uint32_t output = 0;
  std::vector<bool> inputs;
};

struct Proof {
  std::vector<OutputProof> outputs;
  std::optional<CounterExample> counter_example;  // of one output that differs, if any does
  std::string note;                               // why the solver did not answer, if it was needed

  bool equal() const;   // no output is known to differ
  bool proved() const;  // every output was proved equal
};

enum class Solver { off, cadical };

struct ProveOptions {
  std::uint32_t exhaustive_inputs = 30;  // at most, <= 32
  Solver solver = Solver::cadical;
  std::uint32_t conflicts = 1000000;            // after which the solver gives an output up
  std::uint64_t random_assignments = 1u << 16;  // rounded up to a multiple of 256
  std::uint64_t seed = 0;
  const std::atomic<bool>* stop = nullptr;  // not owned, may be null; once it is set, what is not proved stays so
};

// Throws Exception(invalid_input) when validate() fails for one, or when their inputs or outputs differ in number. The
// result depends neither on the number of threads nor, without a stop, on time.
Proof prove_equal(const Exec& exec, const Circuit& a, const Circuit& b, const ProveOptions& options = {});

// "output 2 is 1 instead of 0 when inputs 0, 4 are 1 and the others 0": `actual` beside `expected`.
std::string describe(const CounterExample& example, const Circuit& expected, const Circuit& actual);

}  // namespace gradloom::circuit
