#include "gradloom/data/csv_decimal.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "gradloom/data/csv.h"

namespace gradloom {
namespace {

bool is_plain(std::string_view cell) {
  double value = 0;
  return parse_number(cell, value);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// How a cell is written.
enum class Written {
  other,         // no number
  plain,         // 12, 1.5, 1e3: what parse_number() takes
  plain_groups,  // the same, but may be a whole number with thousands: 1.234
  comma,         // 1,5
  either,        // 1,234: a decimal comma, or thousands
  point_groups,  // 1.234,5 or 1.234.567
  comma_groups,  // 1,234.5 or 1,234,567
};

// Digits in groups: 1 to 3, then groups of three behind `separator`. Returns how many groups follow the first, 0 when
// the text is not of this form; `text` keeps what comes after them.
std::size_t take_groups(std::string_view& text, std::string_view separator) {
  std::size_t at = 0, groups = 0;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at < 1 || at > 3 || (at > 1 && text[0] == '0')) return 0;
  for (; text.substr(at).starts_with(separator); ++groups) {
    const std::string_view group = text.substr(at + separator.size(), 3);
    if (group.size() < 3 || !std::all_of(group.begin(), group.end(), is_digit)) break;
    at += separator.size() + 3;
  }
  if (groups == 0 || (at < text.size() && is_digit(text[at]))) return 0;
  text.remove_prefix(at);
  return groups;
}

// What separates groups and nothing else: a blank, U+00A0, U+202F, an apostrophe, U+2019.
constexpr std::string_view kGaps[] = {" ", "\xc2\xa0", "\xe2\x80\xaf", "'", "\xe2\x80\x99"};

// 1 234,5 as 1234,5; nothing where the cell has no such groups.
std::optional<std::string> without_gaps(std::string_view cell) {
  if (cell.find_first_of(" '\xc2\xe2") == cell.npos) return std::nullopt;  // the usual case
  std::string_view digits = cell;
  if (digits.starts_with('+') || digits.starts_with('-')) digits.remove_prefix(1);
  if (digits.empty() || !is_digit(digits[0]) || digits[0] == '0') return std::nullopt;
  for (const std::string_view gap : kGaps) {
    std::string_view rest = digits;
    if (take_groups(rest, gap) == 0) continue;
    if (!rest.empty() && rest[0] != ',' && rest[0] != '.') return std::nullopt;
    std::string text(cell);
    for (std::size_t at = 0; (at = text.find(gap, at)) != std::string::npos;) text.erase(at, gap.size());
    return text;
  }
  return std::nullopt;
}

bool all_digits(std::string_view text) { return std::all_of(text.begin(), text.end(), is_digit); }

Written written_closed(std::string_view cell) {
  if (cell.find(',') == std::string_view::npos) {
    const bool number = is_plain(cell);
    if (cell.starts_with('+') || cell.starts_with('-')) cell.remove_prefix(1);
    const std::size_t groups = take_groups(cell, ".");
    if (groups == 0 || !cell.empty()) return number ? Written::plain : Written::other;
    return number ? (groups == 1 ? Written::plain_groups : Written::plain) : Written::point_groups;
  }
  if (cell.starts_with('+') || cell.starts_with('-')) cell.remove_prefix(1);
  std::string_view rest = cell;
  if (const std::size_t groups = take_groups(rest, ","); groups > 0 && !cell.starts_with('0')) {
    if (rest.empty()) return groups == 1 ? Written::either : Written::comma_groups;
    if (rest.size() > 1 && rest[0] == '.' && all_digits(rest.substr(1))) return Written::comma_groups;
  }
  rest = cell;
  if (take_groups(rest, ".") > 0 && rest.size() > 1 && rest[0] == ',' && all_digits(rest.substr(1)))
    return Written::point_groups;
  const std::size_t comma = cell.find(',');
  std::string_view fraction = cell.substr(comma + 1);
  const std::size_t exponent = std::min(fraction.find_first_of("eE"), fraction.size());
  std::string_view power = fraction.substr(exponent);
  fraction = fraction.substr(0, exponent);
  if (!power.empty()) power.remove_prefix(1);
  if (power.starts_with('+') || power.starts_with('-')) power.remove_prefix(1);
  const bool whole = all_digits(cell.substr(0, comma)) && all_digits(fraction) && !fraction.empty() &&
                     (exponent == cell.size() - comma - 1 || !power.empty()) && all_digits(power);
  return whole ? Written::comma : Written::other;
}

Written written(std::string_view cell) {
  const auto closed = without_gaps(cell);
  return written_closed(closed ? *closed : cell);
}

bool has_separator(std::string_view cell) { return cell.find(',') != cell.npos || without_gaps(cell); }

// What a column has of each, and the first row that shows it.
struct Evidence {
  std::size_t numbers = 0, others = 0;
  std::optional<std::size_t> comma, point, either, groups;  // `point`: a decimal point for certain
  bool mostly_numbers() const { return numbers > others; }
};

class DecimalRewriter {
 public:
  DecimalRewriter(CsvTable& table, CsvDecimal decimal, CsvDecimal usual, const std::vector<std::string>& texts)
      : table_(table), decimal_(decimal), usual_(usual), texts_(texts.begin(), texts.end()) {}

  void run() {
    const bool may_be_comma = decimal_ == CsvDecimal::comma || usual_ == CsvDecimal::comma;
    if (!may_be_comma && std::none_of(table_.cells.begin(), table_.cells.end(), has_separator)) return;
    std::vector<Evidence> columns;
    for (std::size_t c = 0; c < table_.columns.size(); ++c) columns.push_back(look_at(c));
    bool comma = false, point = false;
    for (const Evidence& e : columns)
      if (e.mostly_numbers()) comma = comma || e.comma.has_value(), point = point || e.point.has_value();
    if (comma != point) table_.decimal = comma ? CsvDecimal::comma : CsvDecimal::point;
    if (decimal_ != CsvDecimal::automatic) table_.decimal = decimal_;
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (columns[c].mostly_numbers()) rewrite(c, decision(c, columns[c], comma, point));
  }

 private:
  [[noreturn]] void fail(std::size_t row, std::size_t column, const std::string& message) const {
    throw_invalid(fmt::format("{}: line {} (row {}), column '{}': '{}' {}", table_.source, table_.lines[row], row + 1,
                              table_.columns[column], table_.cell(row, column).substr(0, 40), message));
  }

  Evidence look_at(std::size_t column) const {
    Evidence e;
    if (texts_.contains(table_.columns[column])) return e;
    for (std::size_t r = 0; r < table_.rows(); ++r) {
      const std::string_view cell = table_.cell(r, column);
      const Written how = written(cell);
      const auto first = [&](std::optional<std::size_t>& place) {
        if (!place) place = r;
      };
      if (how == Written::other)
        e.others += std::any_of(cell.begin(), cell.end(), is_digit);  // words for what is missing have none
      else
        ++e.numbers;
      if (how == Written::comma || how == Written::point_groups) first(e.comma);
      if (how == Written::comma_groups || (how == Written::plain && cell.find('.') != std::string_view::npos))
        first(e.point);
      if (how == Written::either) first(e.either);
      if (how == Written::plain_groups) first(e.groups);
    }
    return e;
  }

  // `comma`, `point`: what some column of numbers has for certain.
  CsvDecimal decision(std::size_t column, const Evidence& e, bool comma, bool point) const {
    if (decimal_ == CsvDecimal::comma && e.point)
      fail(*e.point, column, "has a decimal point, but data.decimal is ','");
    if (decimal_ == CsvDecimal::point && e.comma)
      fail(*e.comma, column, "has a decimal comma, but data.decimal is '.'");
    if (decimal_ != CsvDecimal::automatic) return decimal_;
    if (e.comma && e.point)
      fail(*e.comma, column,
           fmt::format("has a decimal comma, but line {} of the same column has a decimal point: '{}'; correct one",
                       table_.lines[*e.point], table_.cell(*e.point, column).substr(0, 40)));
    if (e.comma) return CsvDecimal::comma;
    if (e.point) return CsvDecimal::point;
    if (usual_ == CsvDecimal::comma && !point) return usual_;
    if (usual_ == CsvDecimal::point && !comma) return usual_;
    if (e.either && e.groups)
      fail(*e.either, column,
           fmt::format("has a comma, but line {} of the same column has a point: '{}'; write both alike, or train with "
                       "data.decimal = \",\" or \".\", which says which one separates the fraction",
                       table_.lines[*e.groups], table_.cell(*e.groups, column).substr(0, 40)));
    if (e.either && comma == point)
      fail(*e.either, column,
           "may be a fraction or a number of thousands; write it with a point or without separators, or train with "
           "data.decimal = \",\" or \".\", which says what it is");
    if (e.groups && comma && !point)
      fail(*e.groups, column,
           "may be a fraction or a number of thousands, since other columns have decimal commas; write it "
           "without separators, or train with data.decimal = \",\" or \".\", which says what it is");
    return comma && !point && e.either ? CsvDecimal::comma : CsvDecimal::point;
  }

  void rewrite(std::size_t column, CsvDecimal decimal) {
    const bool comma = decimal == CsvDecimal::comma;
    for (std::size_t r = 0; r < table_.rows(); ++r) {
      std::string_view& cell = table_.cells[r * table_.columns.size() + column];
      const auto closed = without_gaps(cell);
      const std::string_view number = closed ? *closed : cell;
      const Written how = written_closed(number);
      const bool is_read = how == Written::plain || (how == Written::plain_groups && !comma);
      if (how == Written::other || (is_read && !closed)) continue;
      std::string& text = table_.unquoted->emplace_back(number);
      std::erase(text, comma ? '.' : ',');
      if (comma) std::replace(text.begin(), text.end(), ',', '.');
      cell = text;
    }
  }

  CsvTable& table_;
  CsvDecimal decimal_, usual_;
  std::unordered_set<std::string_view> texts_;
};

}  // namespace

bool is_written_number(std::string_view cell) {
  return is_plain(cell) || (has_separator(cell) && written(cell) != Written::other);
}

void rewrite_decimals(CsvTable& table, CsvDecimal decimal, CsvDecimal usual, const std::vector<std::string>& texts) {
  DecimalRewriter(table, decimal, usual, texts).run();
}

}  // namespace gradloom
