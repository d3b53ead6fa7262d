// Distinct values as numbers 0, 1, ...: classes and categories.
#pragma once

#include <cstdint>
#include <optional>
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

// Finds new values among the `names` of Labels, by the rules that made these.
class LabelIndex {
 public:
  explicit LabelIndex(std::span<const std::string> names);  // must outlive it
  std::optional<std::uint32_t> find(std::string_view value) const;

 private:
  std::span<const std::string> names_;
  std::vector<double> numbers_;  // of all names; empty when one is no number
};

}  // namespace gradloom
