// Distinct values as numbers 0, 1, ...: classes and categories.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradloom {

struct Labels {
  std::vector<std::uint32_t> index;  // of each value, in `names`
  std::vector<std::string>
      names;  // distinct; sorted by value when all are numbers ("1" and "1.0" are one), else by bytes
};

Labels encode_labels(std::span<const std::string_view> values);
Labels encode_labels(std::span<const double> values);

}  // namespace gradloom
