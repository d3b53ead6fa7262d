#include <fmt/format.h>

#include <algorithm>

#include "gradloom/data/csv.h"
#include "gradloom/data/graph_readers.h"
#include "gradloom/data/text_lines.h"

namespace gradloom {
namespace {

namespace fs = std::filesystem;
constexpr std::uint32_t kMostColumns = 1u << 30;

// "CLASS INDEX:VALUE ..." for each node; class -1 is unknown.
void read_nodes(const fs::path& path, const GraphSource& source, GraphSetBuilder& set, GraphBuilder& graph) {
  const std::string text = read_graph_text(path, source.max_bytes);
  TextLines lines(text, path.string());
  SparseRows rows;
  rows.row_ptr.push_back(0);
  while (lines.next()) {
    const auto& words = lines.words();
    NodeValues values;
    values.node_class = words[0] == "-1" ? kUnlabelled : set.node_classes.intern(words[0]);
    if (auto added = graph.add_node(values); !added) lines.fail("{}", added.error().message);
    for (std::size_t k = 1; k < words.size(); ++k) {
      const std::size_t colon = words[k].find(':');
      double index = 0.0, value = 0.0;
      if (colon == std::string_view::npos || !parse_number(words[k].substr(0, colon), index) ||
          !parse_number(words[k].substr(colon + 1), value))
        lines.fail("'{}' is not INDEX:VALUE", TextLines::shown(words[k]));
      if (!(index >= 0 && index < kMostColumns) || index != static_cast<double>(static_cast<std::uint32_t>(index)))
        lines.fail("the index of '{}' is not a whole number from 0 to {}", TextLines::shown(words[k]),
                   kMostColumns - 1);
      const auto column = static_cast<std::uint32_t>(index);
      if (rows.column.size() > rows.row_ptr.back() && rows.column.back() >= column)
        lines.fail("the indices must ascend, but {} follows {}", column, rows.column.back());
      if (!(value - value == 0.0)) lines.fail("the value of '{}' is not finite", TextLines::shown(words[k]));
      rows.columns = std::max(rows.columns, column + 1);
      rows.column.push_back(column);
      rows.value.push_back(value);
    }
    rows.row_ptr.push_back(static_cast<std::uint32_t>(rows.column.size()));
  }
  if (graph.nodes() == 0) lines.fail("there is no node");
  graph.set_sparse_features(std::move(rows)).or_throw();
}

void read_edges(const fs::path& path, const GraphSource& source, GraphBuilder& graph) {
  const std::string text = read_graph_text(path, source.max_bytes);
  TextLines lines(text, path.string(), ",");
  while (lines.next()) {
    if (lines.words().size() != 2) lines.fail("an edge is 'U V', but this line has {} words", lines.words().size());
    const auto added =
        graph.add_edge(lines.number(0, "first node of the edge"), lines.number(1, "second node of the edge"));
    if (!added) lines.fail("{}", added.error().message);
  }
}

// "train 0 1 2 ...": a part of the nodes per line.
void read_splits(const fs::path& path, const GraphSource& source, std::uint32_t nodes, GraphSetBuilder& set) {
  const std::string text = read_graph_text(path, source.max_bytes);
  TextLines lines(text, path.string());
  while (lines.next()) {
    NodeSplit split;
    split.name = lines.words()[0];
    for (std::size_t k = 1; k < lines.words().size(); ++k) {
      split.nodes.push_back(lines.number(k, "node"));
      if (split.nodes.back() >= nodes) lines.fail("node {} does not exist; there are {}", split.nodes.back(), nodes);
    }
    std::sort(split.nodes.begin(), split.nodes.end());
    if (std::adjacent_find(split.nodes.begin(), split.nodes.end()) != split.nodes.end())
      lines.fail("a node is listed twice");
    set.add_node_split(std::move(split));
  }
}

}  // namespace

GraphSet read_planetoid(const GraphSource& source) {
  GraphSetBuilder set;
  GraphBuilder graph(Direction::undirected, source.loops);
  read_nodes(source.path / "nodes.svm", source, set, graph);
  read_edges(source.path / "edges.txt", source, graph);
  std::error_code ignored;
  if (const fs::path splits = source.path / "split_public.txt"; fs::exists(splits, ignored))
    read_splits(splits, source, graph.nodes(), set);
  const fs::path folder = source.path.filename().empty() ? source.path.parent_path() : source.path;
  set.add(graph, folder.filename().string());
  return set.finish();
}

}  // namespace gradloom
