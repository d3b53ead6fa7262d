// Text tables: CSV, tab- or blank-separated, quoted or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/base/result.h"
#include "gradloom/data/csv_decimal.h"

namespace gradloom {

enum class CsvHeader {
  automatic,  // a first row without numbers and empty cells (but the first one), above a row with a number; or with one
              // of header_names; or an empty cell and 0, 1, 2, ...
  present,
  absent,
};
inline constexpr Choice<CsvHeader> kCsvHeaders[] = {
    {CsvHeader::automatic, "auto", "detected from the first rows"},
    {CsvHeader::present, "yes", "the first line holds names"},
    {CsvHeader::absent, "no", "the first line holds values"},
};

struct CsvOptions {
  // One character, or "auto" (from , ; tab | and blanks). "\t" or "tab" is a tab; " " takes runs of blanks as one and
  // trims lines.
  std::string separator = "auto";
  CsvHeader header = CsvHeader::automatic;
  std::vector<std::string> header_names;
  std::string comment;        // lines that start with this are skipped; empty: none
  std::size_t skip_rows = 0;  // lines before the header
  CsvDecimal decimal = CsvDecimal::automatic;
  CsvDecimal usual_decimal = CsvDecimal::automatic;  // of files like this one: decides where the file does not
  std::vector<std::string> texts;                    // columns whose cells are no numbers, whatever they look like
};

// Cells as text, row-major. Blanks around unquoted cells are removed; lines without content are skipped. A first column
// that alone has no name in the header holds the names of rows, as pandas and R write them, and is left out. Numbers
// have decimal points, whatever the file has.
struct CsvTable {
  std::string source;
  bool has_header = false;
  CsvDecimal decimal = CsvDecimal::automatic;  // that numbers of the file had; automatic: unknown, or both
  std::vector<std::string> columns;            // names; column1, column2, ... when there is no header
  std::vector<std::string_view> cells;         // (rows, columns)
  std::vector<std::string_view> row_names;     // (rows): the column that was left out; empty: none was
  std::vector<std::uint32_t> lines;            // line of each row in the file, from 1
  std::size_t rows() const { return lines.size(); }
  std::string_view cell(std::size_t row, std::size_t column) const { return cells[row * columns.size() + column]; }

  std::shared_ptr<const std::string> text;            // what most cells point into
  std::shared_ptr<std::deque<std::string>> unquoted;  // cells that held doubled quotes or other decimals
};

// A text of a few bytes may unpack to millions of columns; a table that wide is no table, and is refused.
inline constexpr std::size_t kMostCsvColumns = 100'000;

// Fails with invalid_input: rows of unequal length (names the line and both counts), quotes that do not close, no rows,
// a text that is UTF-16, repeated names in the header, more than kMostCsvColumns, what rewrite_decimals() refuses.
// Takes time in proportion to the text.
Result<CsvTable> parse_csv(std::string text, const CsvOptions& options, std::string_view source);

// A column by its name, else by its number: 0 is the first, -1 the last.
std::optional<std::size_t> find_column(const std::vector<std::string>& columns, std::string_view name);

// A cell as it is written between commas: in quotes where it must be. Nothing else is changed: a cell that a
// spreadsheet would take for a formula ("=1+1") stays what it is (docs/format.md).
std::string csv_field(std::string_view cell);

// The whole cell as a number ("1", "+1.5e3"), without regard to the locale. False when it is none. Too large gives
// infinity, too small 0.
bool parse_number(std::string_view cell, double& value);

}  // namespace gradloom
