#include "gradloom/data/fingerprint.h"

#include <bit>

namespace gradloom {
namespace {

void add_texts(Fingerprint& f, const std::vector<std::string>& texts) {
  f.take(texts.size());
  for (const std::string& text : texts) f.take(text);
}

void add_graph(Fingerprint& f, const Graph& g) {
  f.take(g.nodes());
  f.take(static_cast<std::uint64_t>(g.direction()));
  for (const auto& numbers : {g.edge_from(), g.edge_to(), g.node_labels(), g.node_classes(), g.edge_labels()})
    f.take(numbers);
  for (const auto& values : {g.edge_weights(), g.node_features(), g.edge_features()}) f.take(values);
  const SparseRows& sparse = g.sparse_features();
  f.take(sparse.columns);
  f.take(std::span<const std::uint32_t>(sparse.row_ptr));
  f.take(std::span<const std::uint32_t>(sparse.column));
  f.take(std::span<const double>(sparse.value));
  f.take(g.graph_class() ? 1 + std::uint64_t{*g.graph_class()} : 0);
  f.take(g.graph_target().has_value());
  f.take(std::bit_cast<std::uint64_t>(g.graph_target().value_or(0.0)));
}

}  // namespace

std::uint64_t fingerprint(const GraphSet& set) {
  Fingerprint f;
  f.take(set.graphs.size());
  for (const Graph& graph : set.graphs) add_graph(f, graph);
  for (const auto* texts : {&set.ids, &set.splits, &set.node_feature_names, &set.edge_feature_names})
    add_texts(f, *texts);
  for (const LabelTable* table : {&set.node_labels, &set.edge_labels, &set.graph_classes, &set.node_classes})
    add_texts(f, table->names());
  f.take(set.node_splits.size());
  for (const NodeSplit& split : set.node_splits) {
    f.take(split.graph);
    f.take(split.name);
    f.take(std::span<const std::uint32_t>(split.nodes));
  }
  f.take(set.node_ids.size());
  for (const auto& ids : set.node_ids) add_texts(f, ids);
  return f.value();
}

std::uint64_t fingerprint_of_text(std::string_view text) {
  Fingerprint f;
  f.take(text);
  return f.value();
}

}  // namespace gradloom
