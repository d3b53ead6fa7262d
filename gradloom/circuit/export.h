// Circuits for other tools: C, Verilog, DOT and SVG (JSON: see json.h), and strict readers of what was written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gradloom/base/result.h"
#include "gradloom/circuit/circuit.h"
#include "gradloom/circuit/json.h"

namespace gradloom::circuit {

// `name` is the function or module; a letter or underscore, then letters, digits and underscores, at most 100. The
// writers throw Exception(invalid_input) for another one, and where validate() fails.

// One function void NAME(const uint64_t *in, uint64_t *out), C99, 64 assignments at once: bit k of every word belongs
// to assignment k. `in` and `out` must not overlap.
std::string to_c(const Circuit& circuit, std::string_view name);

// module NAME(in, out), combinational, Verilog-2001. Circuits without inputs or outputs have one bit that means
// nothing.
std::string to_verilog(const Circuit& circuit, std::string_view name);

// module NAME_test: feeds vectors to NAME and compares; prints PASS, or FAIL and each vector that is wrong. All
// assignments of up to 9 inputs, else 256 random ones by the seed.
std::string to_verilog_test(const Circuit& circuit, std::string_view name, std::uint64_t seed = 0);

// Drawings. Inputs of a cell rule are named by channel and place.
std::string to_dot(const AnyCircuit& any, std::string_view name);
std::string to_svg(const AnyCircuit& any, std::string_view name);

// A .rule file of Golly, as a rule tree: state s of a cell holds channel c in bit c. `name` is the rule's. Throws
// Exception(unsupported) for more than 8 channels, and when the tree or the diagrams that it is made of get too large.
std::string to_golly(const CellRule& rule, std::string_view name);

// What to_c and to_verilog write, and nothing else: fails with invalid_input and the line. Signals are numbered as in
// the file, so the circuit that comes back has the same gates up to the spelling of ops with one operand.
Result<Circuit> parse_c(std::string_view text);
Result<Circuit> parse_verilog(std::string_view text);
// The edges and labels of to_dot, as a circuit.
Result<Circuit> parse_dot(std::string_view text);

}  // namespace gradloom::circuit
