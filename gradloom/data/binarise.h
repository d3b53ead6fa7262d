// Numbers as bits, for models that read bits.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gradloom/data/rows.h"

namespace gradloom {

// One bit: feature `column` > `threshold`.
struct BitColumn {
  std::size_t column = 0;
  double threshold = 0;
  std::string name;  // "age > 30", or the feature's name when it has the values 0 and 1 only
};

// Bits for each feature of `rows`: a constant feature has none; one with few values (at most thresholds + 1) a bit
// between any two neighbours; every other one `thresholds` bits between its quantiles. Throws when no bit is left.
std::vector<BitColumn> choose_bits(const RowDataset<double>& rows, std::size_t thresholds);

// The rows with these bits, 0 or 1, as features.
RowDataset<double> binarise(const RowDataset<double>& rows, const std::vector<BitColumn>& bits);

}  // namespace gradloom
