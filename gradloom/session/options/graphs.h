// Options that families of graphs have in common.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradloom/base/file_name.h"
#include "gradloom/data/graph_dataset.h"
#include "gradloom/data/graph_source.h"

namespace gradloom {

struct GraphFileOptions {
  std::string root;              // folder of the files; empty: the current one, then that of the data
  std::optional<FileName> path;  // a file or folder
  GraphFormat format = GraphFormat::automatic;
  std::optional<FileName> nodes;         // table of the nodes, `path` being that of the edges
  std::optional<FileName> graph_folder;  // of the files that a collection lists; unset: its own folder
  std::string class_column = "class";    // attribute or column with the class
  std::vector<std::string> drop;         // columns of the table of nodes
  GraphFeatureOptions features;
  double validation = 0.1, test = 0.2;  // fractions held out
  std::optional<std::uint64_t> seed;    // of the split; unset: that of training
};

}  // namespace gradloom
