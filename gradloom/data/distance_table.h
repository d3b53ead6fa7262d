// DistanceTable: the known distances between all graphs of a set.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/data/graph.h"

namespace gradloom {

// Symmetric, zero on the diagonal.
struct DistanceTable {
  std::vector<std::string> ids;
  std::vector<double> below;  // (N (N - 1) / 2): pair (i, j), j < i, at i (i - 1) / 2 + j

  std::size_t size() const { return ids.size(); }
  double at(std::size_t i, std::size_t j) const {
    return i == j ? 0.0 : i > j ? below[i * (i - 1) / 2 + j] : below[j * (j - 1) / 2 + i];
  }
};

// Text as `gradloom ged FILE --all-pairs --out F` writes it: the number of graphs, their ids, then for each graph i a
// row with the distances to graphs 0 .. i-1 (that of the first graph is empty). Fails with invalid_input (naming source
// and line) on counts that do not fit and on numbers that are negative or not finite.
Result<DistanceTable> parse_distances(std::string_view text, std::string_view source);
// Fails also as read_file does.
Result<DistanceTable> load_distances(const std::filesystem::path& path);

// The same graphs in the same order; fails with invalid_input naming the first difference.
Result<void> check_same_graphs(const DistanceTable& table, const GraphSet& set);

}  // namespace gradloom
