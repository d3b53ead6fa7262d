// What was learned of a file's columns when its rows became numbers: new files are read by it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradloom/data/rows.h"

namespace gradloom {

// One column that became features.
struct ColumnCode {
  std::string name;
  std::vector<std::string> categories;  // of a text column, in the order of encode_labels(); empty: numbers
  std::vector<double> means;            // of its features; empty unless missing values are filled in
};

struct RowCode {
  bool has_header = false;
  bool decimal_comma = false;        // numbers had decimal commas
  std::vector<std::string> columns;  // all of a text table; empty for arrays and formulas
  std::vector<ColumnCode> features;  // in the order of the features
};

struct LoadedRows {
  RowDataset<double> rows;
  RowCode code;
  std::vector<std::uint32_t> kept;  // where each row stands in the file, from 0; empty: none was left out
  bool has_targets = true;          // false: an array of the features of another one alone; there is one target, 0
};

}  // namespace gradloom
