// Text tables, and rows of numbers from them. What was read is written as CSV and read again.
#include "gradloom/data/csv.h"
#include "gradloom/data/source.h"
#include "tests/fuzz/fuzz.h"

using namespace gradloom;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  const auto table = parse_csv(text, {}, "input");
  if (!table) return 0;
  std::string again;
  const auto put = [&](std::string_view cell, std::size_t c) {
    // A cell that is empty or blank ends needs its quotes to be one.
    std::string field = csv_field(cell);
    if (field == cell) field = '"' + field + '"';
    again += (c > 0 ? "," : "") + field;
  };
  for (std::size_t c = 0; c < table->columns.size(); ++c) put(table->columns[c], c);
  again += '\n';
  for (std::size_t r = 0; r < table->rows(); ++r) {
    for (std::size_t c = 0; c < table->columns.size(); ++c) put(table->cell(r, c), c);
    again += '\n';
  }
  const auto copy = parse_csv(again, {.separator = ",", .header = CsvHeader::present}, "written");
  // Names that repeat, which columns without one may get, are the one thing that a header may not have.
  if (copy) {
    fuzz::require(copy->rows() == table->rows() && copy->columns == table->columns, "rows and columns come back");
    fuzz::require(copy->cells == table->cells, "cells come back");
  }
  RowSource source;
  source.target = {"-1"};
  (void)rows_from_table(*table, source);
  source.task = Task::classification;
  source.missing = MissingPolicy::mean;
  (void)rows_from_table(*table, source);
  return 0;
}
