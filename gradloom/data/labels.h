// Distinct values as numbers 0, 1, ...: classes and categories.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradloom {

// A label is a number when it is written as one in decimal, without a needless zero in front: "007" is a text. Where
// all labels are numbers, they are compared by their exact values ("1", "1.0" and "1e0" are one; whole numbers of any
// size differ as soon as one digit does), else all are compared as texts.
struct Labels {
  std::vector<std::uint32_t> index;  // of each value, in `names`
  std::vector<std::string> names;    // distinct; sorted by value when all are numbers, else by bytes
};

Labels encode_labels(std::span<const std::string_view> values);
Labels encode_labels(std::span<const double> values);

// The exact value of a label that is a number: ± 0.DIGITS · 10^exponent, without zeros at the ends of DIGITS, which are
// empty for 0.
struct DecimalLabel {
  bool negative = false;
  std::int64_t exponent = 0;
  std::string digits;
  bool operator==(const DecimalLabel&) const = default;
  bool operator<(const DecimalLabel& other) const;  // by value
};

// Finds new values among the `names` of Labels, by the rules that made these.
class LabelIndex {
 public:
  explicit LabelIndex(std::span<const std::string> names);  // must outlive it
  std::optional<std::uint32_t> find(std::string_view value) const;

 private:
  std::span<const std::string> names_;
  std::vector<DecimalLabel> numbers_;  // of all names; empty when one is no number
};

}  // namespace gradloom
