// A table with a row per edge.
#pragma once

#include <optional>
#include <string>

#include "gradloom/data/csv.h"

namespace gradloom {

struct EdgeTable {
  // Throws invalid_input on a table that cannot be read, and on columns without a meaning.
  EdgeTable(const std::string& text, const std::string& source);

  CsvTable table;
  std::size_t from = 0, to = 1;  // columns
  std::optional<std::size_t> graph, label, weight;
};

}  // namespace gradloom
