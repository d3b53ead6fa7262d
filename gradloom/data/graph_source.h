// load_graphs(): from a file or folder in one of many formats to a GraphSet. docs/graphs.md shows the formats.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/base/result.h"
#include "gradloom/data/graph.h"

namespace gradloom {

enum class GraphFormat {
  automatic,
  tve,        // "t id split", "v i label", "e u v label"
  tu,         // a folder NAME with NAME_A.txt, NAME_graph_indicator.txt, ..., or a .zip or .tar.gz of it
  gin,        // text of the GIN authors
  gxl,        // a .gxl file, a folder of them, or a .cxl or GEDLIB collection
  edge_list,  // CSV with a row per edge
  tables,     // a folder with nodes.csv and edges.csv
  graphml,
  gml,
  json,       // our own, or networkx's node-link form
  planetoid,  // a folder with nodes.svm, edges.txt, split_public.txt
};
inline constexpr Choice<GraphFormat> kGraphFormats[] = {
    {GraphFormat::automatic, "auto", "found out by the file"},
    {GraphFormat::tve, "tve", "t, v and e lines"},
    {GraphFormat::tu, "tu", "TU data, a folder or an archive"},
    {GraphFormat::gin, "gin", "text of the GIN authors"},
    {GraphFormat::gxl, "gxl", "GXL files, or a collection"},
    {GraphFormat::edge_list, "edges", "CSV with a row per edge"},
    {GraphFormat::tables, "tables", "CSV tables of nodes and edges"},
    {GraphFormat::graphml, "graphml", "GraphML"},
    {GraphFormat::gml, "gml", "GML"},
    {GraphFormat::json, "json", "JSON, of networkx too"},
    {GraphFormat::planetoid, "planetoid", "Planetoid as text"},
};

// Fails with the nearest name.
Result<GraphFormat> parse_graph_format(std::string_view name);

struct GraphSource {
  std::filesystem::path path;  // text files may be gzipped
  GraphFormat format = GraphFormat::automatic;
  Direction direction = Direction::undirected;  // where the format does not say: edge lists, tve
  LoopPolicy loops = LoopPolicy::allow;
  std::filesystem::path nodes;         // `path` is a table of edges: the table of its nodes; empty: none
  std::filesystem::path folder;        // `path` is a collection: the folder of its files; empty: that of the collection
  std::string class_column = "class";  // attribute or column with the class of a node (graph)
  std::vector<std::string> drop;       // columns of the table of nodes to leave out
  // New data for a model that knows features of these names (empty: by position): class_column and the columns of
  // `drop` may be absent, and none of these is left out. Unset: data to learn from.
  std::optional<std::vector<std::string>> known_features;
  std::size_t max_bytes = std::size_t{2} << 30;  // of each file, and of its content once inflated
};

// Fails with not_found, io, invalid_input (messages name file, line, what is wrong and what to do), unsupported.
Result<GraphSet> load_graphs(const GraphSource& source);

// The formats by themselves, from text in memory; `source.path` is the name in messages.
Result<GraphSet> parse_tve(std::string_view text, const GraphSource& source);
Result<GraphSet> parse_gin(std::string_view text, const GraphSource& source);
Result<GraphSet> parse_edge_list(std::string text, const GraphSource& source);
Result<GraphSet> parse_graph_json(std::string_view text, const GraphSource& source);
Result<GraphSet> parse_gxl(std::string_view text, const GraphSource& source);
Result<GraphSet> parse_graphml(std::string_view text, const GraphSource& source);
Result<GraphSet> parse_gml(std::string_view text, const GraphSource& source);
// Empty texts stand for tables that are not there; only that of the edges must be.
struct GraphTables {
  std::string nodes, edges, graphs;
};
Result<GraphSet> parse_graph_tables(GraphTables tables, const GraphSource& source);

}  // namespace gradloom
