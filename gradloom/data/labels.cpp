#include "gradloom/data/labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/data/csv.h"

namespace gradloom {
namespace {

template <class T>
std::vector<T> distinct(std::span<const T> values) {
  std::vector<T> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

template <class T>
std::vector<std::uint32_t> positions(std::span<const T> values, const std::vector<T>& sorted) {
  std::vector<std::uint32_t> index;
  index.reserve(values.size());
  for (const T& value : values)
    index.push_back(static_cast<std::uint32_t>(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin()));
  return index;
}

}  // namespace

Labels encode_labels(std::span<const double> values) {
  const auto sorted = distinct(values);
  Labels labels{positions(values, sorted), {}};
  for (double value : sorted) labels.names.push_back(fmt::format("{}", value == 0 ? 0.0 : value));
  return labels;
}

Labels encode_labels(std::span<const std::string_view> values) {
  std::vector<double> numbers(values.size());
  bool numeric = true;
  for (std::size_t i = 0; i < values.size() && numeric; ++i)
    numeric = parse_number(values[i], numbers[i]) && numbers[i] == numbers[i];  // nan has no order
  if (numeric) return encode_labels(std::span<const double>(numbers));
  const auto sorted = distinct(values);
  return {positions(values, sorted), {sorted.begin(), sorted.end()}};
}

LabelIndex::LabelIndex(std::span<const std::string> names) : names_(names), numbers_(names.size()) {
  bool numeric = true;
  for (std::size_t i = 0; i < names.size() && numeric; ++i)
    numeric = parse_number(names[i], numbers_[i]) && numbers_[i] == numbers_[i];
  if (!numeric) numbers_.clear();
}

std::optional<std::uint32_t> LabelIndex::find(std::string_view value) const {
  double number = 0;
  if (numbers_.empty()) {
    const auto it = std::lower_bound(names_.begin(), names_.end(), value);
    if (it == names_.end() || *it != value) return std::nullopt;
    return static_cast<std::uint32_t>(it - names_.begin());
  }
  if (!parse_number(value, number)) return std::nullopt;
  const auto it = std::lower_bound(numbers_.begin(), numbers_.end(), number);
  if (it == numbers_.end() || *it != number) return std::nullopt;
  return static_cast<std::uint32_t>(it - numbers_.begin());
}

}  // namespace gradloom
