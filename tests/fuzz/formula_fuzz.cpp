// Formulas of data sets.
#include "gradloom/data/formula.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gradloom::FormulaOptions options;
  options.formulas = {std::string(gradloom::fuzz::text_of(data, size))};
  options.samples = 3;
  (void)gradloom::rows_from_formulas(options);
  return 0;
}
