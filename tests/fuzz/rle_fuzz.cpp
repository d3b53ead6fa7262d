// Patterns of cellular automata. What was read is written and read again.
#include "gradloom/circuit/rle.h"
#include "tests/fuzz/fuzz.h"

using namespace gradloom::circuit;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t kMost = 1 << 16;
  const auto pattern = parse_rle(gradloom::fuzz::text_of(data, size), kMost);
  if (!pattern) return 0;
  const std::string text = to_rle(pattern->cells);
  const auto again = parse_rle(text, kMost);
  gradloom::fuzz::require(again.ok(), "a pattern that was written can be read");
  gradloom::fuzz::require(to_rle(again->cells) == text, "a pattern comes back");
  return 0;
}
