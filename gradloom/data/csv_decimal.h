// Numbers with decimal commas or separators of thousands in text tables, rewritten with decimal points.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/choice.h"

namespace gradloom {

struct CsvTable;

enum class CsvDecimal {
  automatic,  // found out column by column; an error where it cannot be
  point,      // 1,234.5
  comma,      // 1.234,5
};
inline constexpr Choice<CsvDecimal> kCsvDecimals[] = {
    {CsvDecimal::automatic, "auto", "detected from the columns"},
    {CsvDecimal::point, ".", "points; commas separate thousands"},
    {CsvDecimal::comma, ",", "commas; points separate thousands"},
};

// Whether the cell is a number: what parse_number() takes, and 1,5 or 1.234,5 or 1,234.5 or 1 234 and the like.
bool is_written_number(std::string_view cell);

// Rewrites the numbers of columns that are mostly numbers. In automatic mode a column is read by its own cells: 1,5 or
// 1.234,5 tell that it has decimal commas, 1,234.5 or 1,234,567 that commas separate its thousands. Where it has only
// cells such as 1,234, the other columns decide. Blanks and apostrophes between groups of three digits (1 234,5) are
// taken away. Throws invalid_input (line, column, cell, what to set) where they do
// not, and where two cells contradict each other or the setting. `usual` decides before it comes to that: what other
// files of this sort have. `texts` names columns that stay as they are. Sets table.decimal.
void rewrite_decimals(CsvTable& table, CsvDecimal decimal, CsvDecimal usual = CsvDecimal::automatic,
                      const std::vector<std::string>& texts = {});

}  // namespace gradloom
