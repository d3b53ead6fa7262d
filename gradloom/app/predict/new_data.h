// The data that a model is asked about.
#pragma once

#include <filesystem>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/base/result.h"

namespace gradloom::app {

struct AppFamily;

// What the data of a family are.
enum class NewDataKind { rows, grids, expressions, graphs, graph_pairs };
inline constexpr Choice<NewDataKind> kNewDataKinds[] = {
    {NewDataKind::rows, "rows", ""},
    {NewDataKind::grids, "grids", ""},
    {NewDataKind::expressions, "expressions", ""},
    {NewDataKind::graphs, "single graphs", ""},
    {NewDataKind::graph_pairs, "pairs of graphs", ""},
};

// Empty: not given. `file` may be empty where it says so.
struct NewData {
  std::filesystem::path file;
  std::filesystem::path distances;  // pairs of graphs: the exact distances of those of the file
  std::filesystem::path nodes;      // graphs: `file` is a table of edges, this one that of the nodes
  std::filesystem::path folder;     // graphs: `file` is a collection, the files that it lists are in this folder

  std::vector<std::filesystem::path> files() const {  // that are given
    std::vector<std::filesystem::path> given;
    for (const auto& path : {file, distances, nodes})
      if (!path.empty()) given.push_back(path);
    return given;
  }
};

// Fails with invalid_input where something is given that models of the family do not read.
Result<void> check_new_data(const AppFamily& family, const NewData& data);

}  // namespace gradloom::app
