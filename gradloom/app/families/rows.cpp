#include "gradloom/app/families/rows.h"

namespace gradloom::app {

Result<AskedRows> ask_rows(const RowFamilyOptions& options, const RowSchema& schema, const std::filesystem::path& file,
                           double largest_input) {
  auto read = load_new_rows(options, ".", schema.training, file, largest_input);
  if (!read) return read.error();
  AskedRows asked{std::move(*read), target_columns(options, schema.training), {}, {}};
  const RowBatch<double> all = asked.rows.rows.all();
  PredictedTable& table = asked.table;
  table.rows = all.size;
  std::vector<std::string> numbers;
  for (std::size_t r = 0; r < all.size; ++r)
    numbers.push_back(fmt::format("{}", asked.rows.numbers.empty() ? r + 1 : asked.rows.numbers[r]));
  table.add("row", std::move(numbers));
  const RowDataset<double>& rows = asked.rows.rows;
  for (std::size_t j = 0; j < asked.targets.size() && asked.rows.has_targets; ++j) {
    std::vector<std::string> truth;
    for (std::size_t r = 0; r < all.size; ++r)
      truth.push_back(rows.is_classification() ? rows.class_names()[all.label[r]]
                                               : number_text(all.target(r, j), Precision::float64));
    table.add(asked.targets[j], std::move(truth));
  }
  asked.outside = outside_of_ranges(schema.ranges, rows);
  return asked;
}

PredictedTable finish_rows(AskedRows asked, const PredictedRows& y, std::optional<PartMetrics> metrics) {
  PredictedTable table = std::move(asked.table);
  const RowDataset<double>& rows = asked.rows.rows;
  if (rows.is_classification())
    add_classes(table, y, asked.targets[0], rows.class_names());
  else
    add_numbers(table, y, asked.targets);
  if (!asked.outside.empty()) add_outside(table, asked.outside);
  table.metrics = std::move(metrics);
  return table;
}

}  // namespace gradloom::app
