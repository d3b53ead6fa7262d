#include "gradloom/data/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "gradloom/data/csv.h"

namespace gradloom {
namespace {

constexpr std::string_view kDigits = "0123456789";

// The value behind "e"; far exponents are cut off, where no two labels meet.
std::optional<std::int64_t> parse_exponent(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || digits.find_first_not_of(kDigits) != std::string_view::npos) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 4;
  if (error == std::errc::result_out_of_range) return text.starts_with('-') ? -kFar : kFar;
  return std::clamp(value, -kFar, kFar);
}

// None when the label is a text.
std::optional<DecimalLabel> parse_decimal(std::string_view text) {
  DecimalLabel d;
  if (text.starts_with('-') || text.starts_with('+')) {
    d.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (const std::size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
    const auto exponent = parse_exponent(text.substr(e + 1));
    if (!exponent) return std::nullopt;
    d.exponent = *exponent;
    text = text.substr(0, e);
  }
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point), part = text.substr(std::min(point + 1, text.size()));
  d.digits = std::string(whole) + std::string(part);
  if (d.digits.empty() || d.digits.find_first_not_of(kDigits) != std::string::npos) return std::nullopt;
  if (whole.size() > 1 && whole[0] == '0') return std::nullopt;
  const std::size_t first = d.digits.find_first_not_of('0');
  if (first == std::string::npos) return DecimalLabel{};
  d.exponent += static_cast<std::int64_t>(whole.size()) - static_cast<std::int64_t>(first);
  d.digits = d.digits.substr(first, d.digits.find_last_not_of('0') + 1 - first);
  return d;
}

// None when one of them is a text.
template <class S>
std::vector<DecimalLabel> parse_decimals(std::span<const S> texts) {
  std::vector<DecimalLabel> numbers;
  numbers.reserve(texts.size());
  for (const S& text : texts) {
    auto number = parse_decimal(text);
    if (!number) return {};
    numbers.push_back(std::move(*number));
  }
  return numbers;
}

// As short as a double of this value is written, else with all its digits.
std::string name_of_label(const DecimalLabel& d, std::string_view written) {
  double value = 0;
  parse_number(written, value);
  std::string name = fmt::format("{}", value == 0 ? 0.0 : value);
  if (parse_decimal(name) == d) return name;
  const bool whole = d.exponent >= static_cast<std::int64_t>(d.digits.size()) && d.exponent <= 400;
  if (!whole) return std::string(written);
  return (d.negative ? "-" : "") + d.digits + std::string(static_cast<std::size_t>(d.exponent) - d.digits.size(), '0');
}

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

bool DecimalLabel::operator<(const DecimalLabel& other) const {
  const auto sign = [](const DecimalLabel& d) { return d.digits.empty() ? 0 : d.negative ? -1 : 1; };
  if (sign(*this) != sign(other)) return sign(*this) < sign(other);
  const DecimalLabel &a = negative ? other : *this, &b = negative ? *this : other;
  return a.exponent != b.exponent ? a.exponent < b.exponent : a.digits < b.digits;
}

Labels encode_labels(std::span<const double> values) {
  const auto sorted = distinct(values);
  Labels labels{positions(values, sorted), {}};
  for (double value : sorted) labels.names.push_back(fmt::format("{}", value == 0 ? 0.0 : value));
  return labels;
}

Labels encode_labels(std::span<const std::string_view> values) {
  // Few texts are different: only those are looked at as numbers.
  const auto texts = distinct(values);
  const std::vector<std::uint32_t> text_of = positions(values, texts);
  const auto numbers = parse_decimals(std::span<const std::string_view>(texts));
  if (numbers.empty()) return {text_of, {texts.begin(), texts.end()}};
  const auto sorted = distinct(std::span<const DecimalLabel>(numbers));
  const auto number_of = positions(std::span<const DecimalLabel>(numbers), sorted);
  Labels labels;
  labels.names.resize(sorted.size());
  for (std::size_t t = 0; t < texts.size(); ++t)
    if (std::string& name = labels.names[number_of[t]]; name.empty()) name = name_of_label(numbers[t], texts[t]);
  labels.index.reserve(values.size());
  for (const std::uint32_t t : text_of) labels.index.push_back(number_of[t]);
  return labels;
}

LabelIndex::LabelIndex(std::span<const std::string> names) : names_(names), numbers_(parse_decimals(names)) {}

std::optional<std::uint32_t> LabelIndex::find(std::string_view value) const {
  if (numbers_.empty()) {
    const auto it = std::lower_bound(names_.begin(), names_.end(), value);
    if (it == names_.end() || *it != value) return std::nullopt;
    return static_cast<std::uint32_t>(it - names_.begin());
  }
  const auto number = parse_decimal(value);
  if (!number) return std::nullopt;
  const auto it = std::lower_bound(numbers_.begin(), numbers_.end(), *number);
  if (it == numbers_.end() || *it != *number) return std::nullopt;
  return static_cast<std::uint32_t>(it - numbers_.begin());
}

}  // namespace gradloom
