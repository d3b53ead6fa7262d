// Costs of edits: five numbers, or JSON.
#include "gradloom/ged/costs.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = gradloom::fuzz::text_of(data, size);
  (void)gradloom::ged::parse_costs(text);
  (void)gradloom::ged::parse_costs_json(text, "input");
  return 0;
}
