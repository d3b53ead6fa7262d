// Circuits as JSON. What was read is written and read again.
#include "gradloom/circuit/json.h"
#include "tests/fuzz/fuzz.h"

using namespace gradloom::circuit;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto any = parse_circuit_json(gradloom::fuzz::text_of(data, size));
  if (!any) return 0;
  const std::string text = to_json(*any);
  const auto again = parse_circuit_json(text);
  gradloom::fuzz::require(again.ok(), "a circuit that was written can be read");
  gradloom::fuzz::require(to_json(*again) == text, "a circuit comes back");
  return 0;
}
