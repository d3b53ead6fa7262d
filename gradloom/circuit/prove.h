// Proofs that two circuits are equal: output by output, with the method that was used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/circuit/circuit.h"
#include "gradloom/circuit/yosys.h"
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
  std::optional<CounterExample> counter_example;  // of the first output that differs, where one is known
  std::string note;                               // why a solver was not used, if it was needed

  bool equal() const;   // no output is known to differ
  bool proved() const;  // every output was proved equal
};

enum class Solver { off, yosys };

struct ProveOptions {
  std::uint32_t exhaustive_inputs = 30;  // at most, <= 32
  Solver solver = Solver::yosys;
  YosysOptions yosys;
  std::uint64_t random_assignments = 1u << 16;  // rounded up to a multiple of 256
  std::uint64_t seed = 0;
};

// Throws Exception(invalid_input) when validate() fails for one, or when their inputs or outputs differ in number. The
// result does not depend on the number of threads (but a solver may run out of time).
Proof prove_equal(const Exec& exec, const Circuit& a, const Circuit& b, const ProveOptions& options = {});

}  // namespace gradloom::circuit
