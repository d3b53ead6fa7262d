// TU data: a folder of files, as MemoryFolder::fill() makes it.
#include "gradloom/data/graph_source.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const gradloom::fuzz::MemoryFolder folder;
  constexpr std::string_view kNames[] = {
      "S_A.txt",           "S_graph_indicator.txt", "S_graph_labels.txt",    "S_node_labels.txt",
      "S_edge_labels.txt", "S_node_attributes.txt", "S_edge_attributes.txt", "S_graph_attributes.txt"};
  folder.fill(gradloom::fuzz::text_of(data, size), kNames);
  (void)gradloom::load_graphs({.path = folder.path(), .format = gradloom::GraphFormat::tu, .max_bytes = 1 << 20});
  return 0;
}
