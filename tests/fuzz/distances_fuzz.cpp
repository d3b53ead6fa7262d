// Tables of distances between graphs.
#include "gradloom/data/distance_table.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto table = gradloom::parse_distances(gradloom::fuzz::text_of(data, size), "input");
  if (!table) return 0;
  for (std::size_t a = 0; a < table->ids.size(); ++a)
    gradloom::fuzz::require(table->at(a, 0) >= 0 && table->at(a, 0) == table->at(0, a), "distances are symmetric");
  return 0;
}
