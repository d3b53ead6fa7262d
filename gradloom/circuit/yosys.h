// Minimises circuits with yosys and abc, where they are installed.
#pragma once

#include <filesystem>
#include <string_view>

#include "gradloom/base/result.h"
#include "gradloom/circuit/circuit.h"

namespace gradloom::circuit {

struct YosysOptions {
  std::filesystem::path program;  // empty: looked for where packages install it
  double seconds = 60.0;          // after which it is ended
};

// The same function as far as yosys is right: prove it. Fails with not_found where yosys is not installed, with io when
// it fails, is too slow, or answers what cannot be read. Precondition: validate(circuit) succeeds.
Result<Circuit> minimise_with_yosys(const Circuit& circuit, const YosysOptions& options = {});

// The netlists of gates of at most two inputs that yosys writes as BLIF, with inputs in[i] and outputs out[o]. The text
// is not trusted. Fails with invalid_input.
Result<Circuit> parse_blif(std::string_view text, std::uint32_t inputs, std::uint32_t outputs);

}  // namespace gradloom::circuit
