// Readers of graphs that need more than one file. All throw Exception as load_graphs() fails.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "gradloom/data/graph_source.h"

namespace gradloom {

// The content of a file, inflated if it is gzipped.
std::string read_graph_text(const std::filesystem::path& path, std::size_t max_bytes);

// NAME of the file NAME_A.txt in a folder, the first by name; empty when there is none.
std::string tu_prefix(const std::filesystem::path& folder);
// source.path is the folder, or its NAME_A.txt.
GraphSet read_tu(const GraphSource& source);

GraphSet read_planetoid(const GraphSource& source);

// A collection: names of .gxl files beside it, with their classes. Names that lead out of its folder are refused.
// source.folder, where it is not empty, is the folder of the files.
GraphSet read_cxl(std::string_view text, const GraphSource& source);
// Whether XML is a collection: of CXL, or of GEDLIB.
bool is_collection(std::string_view text);
// All .gxl files of the folder source.path, by their names.
GraphSet read_gxl_folder(const GraphSource& source);

// Tables of a folder: edges.csv, nodes.csv and, where it exists, graphs.csv; or source.path with the edges and
// source.nodes with the nodes.
GraphSet read_tables(const GraphSource& source);

// TU data in an archive: the content of a .zip or .tar file.
GraphSet read_tu_archive(std::string_view bytes, const GraphSource& source);

}  // namespace gradloom
