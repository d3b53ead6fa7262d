#include "gradloom/data/graph_source.h"

#include <fmt/format.h>

#include "gradloom/data/archive.h"
#include "gradloom/data/graph_readers.h"
#include "gradloom/data/inflate.h"
#include "gradloom/data/text_lines.h"
#include "gradloom/io/file.h"
#include "gradloom/io/nearest.h"

namespace gradloom {
namespace {

namespace fs = std::filesystem;

GraphFormat folder_format(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path / "nodes.svm", ignored)) return GraphFormat::planetoid;
  if (fs::exists(path / "edges.csv", ignored)) return GraphFormat::tables;
  if (!tu_prefix(path).empty()) return GraphFormat::tu;
  for (const auto& entry : fs::directory_iterator(path, ignored))
    if (entry.path().extension() == ".gxl") return GraphFormat::gxl;
  throw Exception(
      ErrorCode::invalid_input,
      fmt::format("{}: the folder has neither NAME_A.txt (TU data), edges.csv (tables), .gxl files nor nodes.svm "
                  "(Planetoid as text); name a file in it, or convert it to one of the formats of docs/graphs.md",
                  path.string()));
}

// By the name of the file, else by how its text starts.
GraphFormat file_format(const fs::path& path, std::string_view text) {
  fs::path name = path.filename();
  if (name.extension() == ".gz") name = name.stem();
  const fs::path kind = name.extension();
  if (kind == ".gxl" || kind == ".cxl") return GraphFormat::gxl;
  if (kind == ".json") return GraphFormat::json;
  if (kind == ".graphml") return GraphFormat::graphml;
  if (kind == ".gml") return GraphFormat::gml;
  if (kind == ".csv" || kind == ".tsv" || kind == ".edges") return GraphFormat::edge_list;
  TextLines lines(text, path.string());
  while (lines.next()) {
    const std::string_view word = lines.words()[0];
    if (word.starts_with('#')) continue;
    if (word == "t") return GraphFormat::tve;
    if (word.starts_with('{') || word.starts_with('[')) return GraphFormat::json;
    if (word.starts_with('<'))
      return text.substr(0, 4096).find("<graphml") != text.npos ? GraphFormat::graphml : GraphFormat::gxl;
    if (word == "graph" || word == "Creator" || word == "Version") return GraphFormat::gml;
    if (lines.words().size() == 1 && word.find_first_not_of("0123456789") == std::string_view::npos)
      return GraphFormat::gin;
    break;
  }
  throw Exception(ErrorCode::invalid_input,
                  fmt::format("{}: the format of the graphs cannot be detected; set data.format "
                              "(tve, tu, gin, gxl, edges, tables, graphml, gml, json, planetoid)",
                              path.string()));
}

GraphSet parse_text(GraphFormat format, std::string text, const GraphSource& source) {
  switch (format) {
    case GraphFormat::tve:
      return parse_tve(text, source).or_throw();
    case GraphFormat::gin:
      return parse_gin(text, source).or_throw();
    case GraphFormat::json:
      return parse_graph_json(text, source).or_throw();
    case GraphFormat::edge_list:
      return parse_edge_list(std::move(text), source).or_throw();
    case GraphFormat::graphml:
      return parse_graphml(text, source).or_throw();
    case GraphFormat::gml:
      return parse_gml(text, source).or_throw();
    case GraphFormat::gxl:
      break;
    case GraphFormat::automatic:
    case GraphFormat::tables:
    case GraphFormat::tu:
    case GraphFormat::planetoid:
      throw_invalid(fmt::format("{}: the format '{}' is not a format of a single file", source.path.string(),
                                name_of(kGraphFormats, format)));
  }
  return source.path.extension() == ".cxl" || is_collection(text) ? read_cxl(text, source)
                                                                  : parse_gxl(text, source).or_throw();
}

}  // namespace

std::string read_graph_text(const fs::path& path, std::size_t max_bytes) {
  std::string text = read_file(path, max_bytes).or_throw();
  if (looks_like_gzip(text)) text = inflate_bytes(text, Compression::gzip, max_bytes, path.string()).or_throw();
  return text;
}

Result<GraphFormat> parse_graph_format(std::string_view name) {
  if (const auto format = find_choice<GraphFormat>(kGraphFormats, name)) return *format;
  std::vector<std::string> names;
  for (const Choice<GraphFormat>& f : kGraphFormats) names.emplace_back(f.name);
  return Error{ErrorCode::invalid_input,
               fmt::format("there is no graph format '{}'; the nearest is '{}'", name, nearest_name(name, names))};
}

Result<GraphSet> load_graphs(const GraphSource& source) try {
  std::error_code ignored;
  GraphFormat format = source.format;
  const bool folder = fs::is_directory(source.path, ignored);
  if (folder && format == GraphFormat::automatic) format = folder_format(source.path);
  if (format == GraphFormat::planetoid) return read_planetoid(source);
  const std::string name = source.path.filename().string();
  if (format == GraphFormat::tu ? folder || name.ends_with("_A.txt")
                                : format == GraphFormat::automatic && name.ends_with("_A.txt"))
    return read_tu(source);
  if (format == GraphFormat::tables || !source.nodes.empty()) return read_tables(source);
  if (folder && format == GraphFormat::gxl) return read_gxl_folder(source);
  if (folder)
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: this is a folder; name a file in it", source.path.string())};
  std::string text = read_graph_text(source.path, source.max_bytes);
  if ((format == GraphFormat::tu || format == GraphFormat::automatic) && looks_like_archive(text))
    return read_tu_archive(text, source);
  if (format == GraphFormat::tu) return read_tu(source);
  if (format == GraphFormat::automatic) format = file_format(source.path, text);
  return parse_text(format, std::move(text), source);
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom
