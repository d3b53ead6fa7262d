// Graphs as JSON, and the columns that networks read of them.
#include <numeric>

#include "gradloom/base/error.h"
#include "gradloom/data/graph_dataset.h"
#include "gradloom/data/graph_source.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gradloom;
  const Result<GraphSet> set = parse_graph_json(fuzz::text_of(data, size), {.path = "input"});
  if (!set) return 0;
  std::size_t nodes = 0;
  for (const Graph& g : set->graphs) nodes += g.nodes();
  if (nodes > 1000) return 0;
  std::vector<std::uint32_t> which(set->size());
  std::iota(which.begin(), which.end(), 0u);
  for (const GraphTask task : {GraphTask::graph, GraphTask::node})
    for (const bool all : {false, true}) try {
        GraphFeatureOptions options;
        options.edge_labels = options.targets_known = all;
        (void)make_graph_arrays<float>(*set, which, task, options);
      } catch (const Exception&) {
      }
  return 0;
}
