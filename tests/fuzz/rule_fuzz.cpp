// Rules of cells: names such as B3/S23, and tables of 512 rows.
#include "gradloom/base/life_rule.h"
#include "gradloom/data/grids.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = gradloom::fuzz::text_of(data, size);
  if (const auto rule = gradloom::parse_life_rule(text))
    gradloom::fuzz::require(gradloom::parse_life_rule(gradloom::name_of_rule(*rule)) == rule, "a name is read back");
  (void)gradloom::parse_patch_table(std::string(text), "input");
  return 0;
}
