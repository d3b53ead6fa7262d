// GraphML, which is XML.
#include "gradloom/data/graph_source.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)gradloom::parse_graphml(gradloom::fuzz::text_of(data, size), {.path = "input"});
  return 0;
}
