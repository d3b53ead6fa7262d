// load_graphs(): from a file or folder in one of many formats to a GraphSet. docs/graphs.md shows the formats.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "gradloom/base/choice.h"
#include "gradloom/base/result.h"
#include "gradloom/data/graph.h"

namespace gradloom {

enum class GraphFormat {
  automatic,
  tve,        // "t id split", "v i label", "e u v label"
  tu,         // a folder NAME with NAME_A.txt, NAME_graph_indicator.txt, ...
  gin,        // text of the GIN authors
  gxl,        // a .gxl file, or a .cxl collection of them
  edge_list,  // CSV with a row per edge
  json,
  planetoid,  // a folder with nodes.svm, edges.txt, split_public.txt
};
inline constexpr Choice<GraphFormat> kGraphFormats[] = {
    {GraphFormat::automatic, "auto", "found out by the file"},
    {GraphFormat::tve, "tve", "t, v and e lines"},
    {GraphFormat::tu, "tu", "a folder of TU data"},
    {GraphFormat::gin, "gin", "text of the GIN authors"},
    {GraphFormat::gxl, "gxl", "GXL, or a CXL collection"},
    {GraphFormat::edge_list, "edges", "CSV with a row per edge"},
    {GraphFormat::json, "json", "JSON"},
    {GraphFormat::planetoid, "planetoid", "Planetoid as text"},
};

// Fails with the nearest name.
Result<GraphFormat> parse_graph_format(std::string_view name);

struct GraphSource {
  std::filesystem::path path;  // text files may be gzipped
  GraphFormat format = GraphFormat::automatic;
  Direction direction = Direction::undirected;  // where the format does not say: edge lists, tve
  LoopPolicy loops = LoopPolicy::allow;
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

}  // namespace gradloom
