// IDX arrays.
#include "gradloom/data/idx.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto array = gradloom::parse_idx(gradloom::fuzz::text_of(data, size), "input");
  if (!array) return 0;
  std::size_t values = 1;
  for (const std::size_t n : array->shape) values *= n;
  gradloom::fuzz::require(values == array->size(), "there are as many values as the shape says");
  (void)array->to_doubles();
  return 0;
}
