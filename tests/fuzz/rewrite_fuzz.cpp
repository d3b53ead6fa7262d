// Expressions that are rewritten. What was read is written and read again.
#include "gradloom/base/error.h"
#include "gradloom/data/expression.h"
#include "tests/fuzz/fuzz.h"

using namespace gradloom;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Expression e;
  try {
    e = parse_expression(fuzz::text_of(data, size));
  } catch (const Exception&) {
    return 0;
  }
  fuzz::require(parse_expression(to_text(e)) == e, "an expression comes back");
  return 0;
}
