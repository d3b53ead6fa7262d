// Tables of nodes, edges and graphs. A line of the input that is "%nodes", "%edges" or "%graphs" begins one.
#include "gradloom/data/graph_source.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gradloom::GraphTables tables;
  std::string* table = &tables.edges;
  std::string_view text = gradloom::fuzz::text_of(data, size);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line == "%nodes")
      table = &tables.nodes;
    else if (line == "%edges")
      table = &tables.edges;
    else if (line == "%graphs")
      table = &tables.graphs;
    else
      *table += std::string(line) + '\n';
  }
  (void)gradloom::parse_graph_tables(std::move(tables), {.path = "input"});
  return 0;
}
