#include "gradloom/data/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <unordered_set>

#include "gradloom/io/utf8.h"

namespace gradloom {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trim(std::string_view s) {
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
  return s;
}

class CsvParser {
 public:
  CsvParser(std::string text, const CsvOptions& options, std::string_view source) : options_(options) {
    table_.source = source;
    table_.text = std::make_shared<const std::string>(std::move(text));
    table_.unquoted = std::make_shared<std::deque<std::string>>();
  }

  CsvTable run() {
    text_ = *table_.text;
    if (text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff")) fail("the text is UTF-16; save it as UTF-8");
    check_utf8();
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
    if (const std::size_t cr = text_.find('\r'); cr < text_.size() - 1 && text_.find('\n') == std::string_view::npos)
      fail("its lines end with a carriage return alone; save it with line feeds (LF or CRLF)");
    for (std::size_t i = 0; i < options_.skip_rows && !text_.empty(); ++i) skip_line();
    choose_separator();
    while (!text_.empty()) read_row();
    if (width_ == 0) fail("there are no rows");
    take_header();
    if (table_.lines.empty()) fail("there is a header, but no row follows it");
    rewrite_decimals(table_, options_.decimal, options_.usual_decimal, options_.texts);
    return std::move(table_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_invalid(fmt::format("{}: {}", table_.source, fmt::format(format, std::forward<Args>(args)...)));
  }

  // A name in another encoding could not be written to a model file.
  void check_utf8() const {
    if (is_utf8(text_)) return;
    std::size_t at = 0;
    for (std::size_t length; at < text_.size() && (length = utf8_length(text_.substr(at))) > 0;) at += length;
    const auto before = text_.substr(0, at);
    fail("line {} is not UTF-8; save the file as UTF-8", 1 + std::count(before.begin(), before.end(), '\n'));
  }

  void skip_line() {
    const std::size_t end = text_.find('\n');
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
    ++line_;
  }

  bool is_skipped(std::string_view line) const {
    const std::string_view content = trim(line);
    return content.empty() || content == "\r" || (!options_.comment.empty() && content.starts_with(options_.comment));
  }

  void choose_separator() {
    const std::string& s = options_.separator;
    if (s == "auto")
      detect_separator();
    else if (s == "tab" || s == "\\t")
      separator_ = '\t';
    else if (s.size() == 1 && s != "\"" && s != "\n" && s != "\r")
      separator_ = s[0];
    else
      fail("the separator '{}' must be one character, 'tab' or 'auto'", s);
    blanks_ = separator_ == ' ';
  }

  // The candidate that splits the first lines into most pieces of the same number.
  void detect_separator() {
    constexpr std::string_view kCandidates = ",;\t|";
    std::size_t best = 0;
    std::string_view rest = text_;
    std::vector<std::string_view> sample;
    while (!rest.empty() && sample.size() < 20) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      if (!is_skipped(rest.substr(0, end))) sample.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    separator_ = ',';
    for (char candidate : kCandidates) {
      std::size_t least = std::numeric_limits<std::size_t>::max();
      for (std::string_view line : sample) {
        std::size_t count = 0;
        bool quoted = false;
        for (char c : line) {
          if (c == '"') quoted = !quoted;
          if (c == candidate && !quoted) ++count;
        }
        least = std::min(least, count);
      }
      if (!sample.empty() && least > best) {
        best = least;
        separator_ = candidate;
      }
    }
    const auto has_blank = [](std::string_view line) {
      return trim(line).find_first_of(" \t") != std::string_view::npos;
    };
    if (best == 0 && !sample.empty() && std::all_of(sample.begin(), sample.end(), has_blank)) separator_ = ' ';
    if (separator_ != ',') return;
    for (char candidate : std::string_view(";\t| "))
      if (leaves_comma_numbers(sample, candidate)) separator_ = candidate;
  }

  // Whether every line has several cells between `separator`s, and commas stand in numbers and quotes alone: 1,5;2,5.
  static bool leaves_comma_numbers(const std::vector<std::string_view>& sample, char separator) {
    bool found = false;
    for (std::string_view line : sample) {
      if (line.ends_with('\r')) line.remove_suffix(1);
      line = trim(line);
      if (line.find(separator) == std::string_view::npos) return false;
      for (std::size_t at = 0; at <= line.size();) {
        std::size_t end = at;
        for (bool quoted = false; end < line.size() && (quoted || line[end] != separator); ++end)
          if (line[end] == '"') quoted = !quoted;
        const std::string_view cell = trim(line.substr(at, end - at));
        at = end + 1;
        if (cell.find(',') == std::string_view::npos || (cell.front() == '"' && cell.back() == '"')) continue;
        if (!is_written_number(cell)) return false;
        found = true;
      }
    }
    return found;
  }

  void read_row() {
    const std::size_t newline = text_.find('\n');
    if (is_skipped(text_.substr(0, newline))) return skip_line();
    const std::uint32_t first_line = line_;
    const std::size_t before = table_.cells.size();
    bool more = true;
    while (more) {
      more = read_cell();
      if (table_.cells.size() - before > kMostCsvColumns)
        fail("line {} has more than {} cells, the limit (kMostCsvColumns); is the separator '{}' right?", first_line,
             kMostCsvColumns, separator_ == '\t' ? std::string("tab") : std::string(1, separator_));
    }
    const std::size_t width = table_.cells.size() - before;
    if (width_ == 0) width_ = width;
    if (width != width_)
      fail("line {} has {} cells, but the rows before it have {}; is the separator '{}' right?", first_line, width,
           width_, separator_ == '\t' ? std::string("tab") : std::string(1, separator_));
    table_.lines.push_back(first_line);
  }

  bool is_gap(char c) const { return is_blank(c) && (blanks_ || c != separator_); }

  void skip_gap() {
    while (!text_.empty() && is_gap(text_.front())) text_.remove_prefix(1);
  }

  // Reads one cell and what ends it; true when another one follows on this line.
  bool read_cell() {
    skip_gap();
    if (text_.starts_with('"')) {
      table_.cells.push_back(read_quoted());
      skip_gap();
      if (!at_end() && text_.front() != separator_ && !blanks_)
        fail("line {}: text follows a closing quote; write \"\" for a quote inside quotes", line_);
    } else {
      std::size_t end = 0;
      while (end < text_.size() && text_[end] != '\n' && (blanks_ ? !is_blank(text_[end]) : text_[end] != separator_))
        ++end;
      std::string_view cell = text_.substr(0, end);
      if (cell.ends_with('\r') && (end == text_.size() || text_[end] == '\n')) cell.remove_suffix(1);
      table_.cells.push_back(trim(cell));
      text_.remove_prefix(end);
      if (blanks_) skip_gap();
    }
    if (at_end()) {
      if (!text_.empty()) skip_line();
      return false;
    }
    if (!blanks_) text_.remove_prefix(1);
    return true;
  }

  bool at_end() const { return text_.empty() || text_.front() == '\n' || text_ == "\r" || text_.starts_with("\r\n"); }

  std::string_view read_quoted() {
    const std::uint32_t opened = line_;
    bool doubled = false;
    std::size_t end = 1;
    for (;; ++end) {
      end = text_.find('"', end);
      if (end == std::string_view::npos) fail("line {}: a quote is not closed", opened);
      if (end + 1 >= text_.size() || text_[end + 1] != '"') break;
      doubled = true;
      ++end;
    }
    std::string_view cell = text_.substr(1, end - 1);
    line_ += static_cast<std::uint32_t>(std::count(cell.begin(), cell.end(), '\n'));
    text_.remove_prefix(end + 1);
    if (!doubled) return cell;
    std::string& plain = table_.unquoted->emplace_back();
    for (std::size_t i = 0; i < cell.size(); ++i) {
      plain += cell[i];
      if (cell[i] == '"') ++i;
    }
    return plain;
  }

  // pandas writes an index without a name, and numbers columns that have none: ,0,1,2.
  bool first_row_numbers_columns() const {
    bool numbers = width_ > 1 && table_.rows() > 1 && table_.cells[0].empty();
    for (std::size_t c = 1; c < width_ && numbers; ++c) numbers = table_.cells[c] == std::to_string(c - 1);
    // An index names every row, and no two alike.
    std::unordered_set<std::string_view> index;
    for (std::size_t r = 1; r < table_.rows() && numbers; ++r) {
      const std::string_view cell = table_.cells[r * width_];
      numbers = !cell.empty() && index.insert(cell).second;
    }
    return numbers;
  }

  bool first_row_is_header() const {
    if (options_.header != CsvHeader::automatic) return options_.header == CsvHeader::present;
    if (first_row_numbers_columns()) return true;
    const auto& names = options_.header_names;
    for (std::size_t c = 0; c < width_; ++c)
      if (std::find(names.begin(), names.end(), table_.cells[c]) != names.end()) return true;
    for (std::size_t c = 0; c < width_; ++c)
      if ((table_.cells[c].empty() && (c > 0 || width_ == 1)) || is_written_number(table_.cells[c])) return false;
    for (std::size_t c = 0; c < width_ && table_.rows() > 1; ++c)
      if (is_written_number(table_.cells[width_ + c])) return true;
    return false;
  }

  void take_header() {
    table_.has_header = first_row_is_header();
    if (!table_.has_header) {
      for (std::size_t c = 0; c < width_; ++c) table_.columns.push_back(fmt::format("column{}", c + 1));
      return;
    }
    const auto header = table_.cells.begin();
    const bool row_names = width_ > 1 && header->empty() &&
                           std::count(header, header + static_cast<std::ptrdiff_t>(width_), std::string_view()) == 1;
    std::map<std::string_view, std::size_t> places;
    for (std::size_t c = 0; c < width_; ++c) {
      const auto [first, is_new] = places.emplace(table_.cells[c], c);
      if (!is_new && !table_.cells[c].empty())
        fail(
            "the header names '{}' twice, in columns {} and {} (counted from 1); rename one; a file without a "
            "header is trained on with data.header = \"no\"",
            table_.cells[c], first->second + 1, c + 1);
      table_.columns.push_back(table_.cells[c].empty() ? fmt::format("column{}", c + 1) : std::string(table_.cells[c]));
    }
    table_.cells.erase(table_.cells.begin(), table_.cells.begin() + static_cast<std::ptrdiff_t>(width_));
    table_.lines.erase(table_.lines.begin());
    if (row_names) leave_out_first_column();
  }

  void leave_out_first_column() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < table_.cells.size(); ++i)
      if (i % width_ == 0)
        table_.row_names.push_back(table_.cells[i]);
      else
        table_.cells[kept++] = table_.cells[i];
    table_.cells.resize(kept);
    table_.columns.erase(table_.columns.begin());
  }

  const CsvOptions& options_;
  CsvTable table_;
  std::string_view text_;  // not read yet
  std::uint32_t line_ = 1;
  std::size_t width_ = 0;
  char separator_ = ',';
  bool blanks_ = false;
};

}  // namespace

std::optional<std::size_t> find_column(const std::vector<std::string>& columns, std::string_view name) {
  const auto it = std::find(columns.begin(), columns.end(), name);
  if (it != columns.end()) return static_cast<std::size_t>(it - columns.begin());
  long long number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const auto width = static_cast<long long>(columns.size());
  if (name.empty() || error != std::errc() || end != name.data() + name.size() || number < -width || number >= width)
    return std::nullopt;
  return static_cast<std::size_t>(number < 0 ? number + width : number);
}

std::string csv_field(std::string_view cell) {
  const bool plain = cell.find_first_of(",\"\r\n") == cell.npos && cell == trim(cell);
  if (plain) return std::string(cell);
  std::string field = "\"";
  for (const char c : cell) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + '"';
}

bool parse_number(std::string_view cell, double& value) {
  if (cell.starts_with('+') && cell.size() > 1 && cell[1] != '-') cell.remove_prefix(1);
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (end != cell.data() + cell.size() || cell.empty()) return false;
  if (error == std::errc::result_out_of_range) {
    // from_chars does not say on which side: a number is small if its exponent is negative or its integer part zero.
    const std::size_t digit = cell.find_first_of("123456789.eE");
    const bool small =
        cell.find("e-") != std::string_view::npos || cell.find("E-") != std::string_view::npos ||
        (digit != std::string_view::npos && cell[digit] == '.' && cell.find_first_of("eE") == std::string_view::npos);
    value = small ? 0.0 : std::numeric_limits<double>::infinity();
    return true;
  }
  return error == std::errc();
}

Result<CsvTable> parse_csv(std::string text, const CsvOptions& options, std::string_view source) {
  try {
    return CsvParser(std::move(text), options, source).run();
  } catch (const Exception& e) {
    return e.error();
  }
}

}  // namespace gradloom
