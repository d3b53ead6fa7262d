// load_rows(): from a file or formulas, as a recipe describes them, to a RowDataset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/base/result.h"
#include "gradloom/data/csv.h"
#include "gradloom/data/formula.h"
#include "gradloom/data/row_code.h"
#include "gradloom/data/rows.h"

namespace gradloom {

enum class Task { regression, classification };
inline constexpr Choice<Task> kTasks[] = {
    {Task::regression, "regression", "numbers"},
    {Task::classification, "classification", "one class of several"},
};

enum class RowFormat {
  automatic,  // by the file's name: .npy, .npz, those of IDX (is_idx_name), otherwise CSV; .gz may follow
  csv,
  npy,
  npz,
  idx,
};

enum class MissingPolicy {
  error,  // fail, naming the row and column
  drop,   // leave the row out
  mean,   // the column's mean over all rows of the (training) file; for text, of its features; never for targets
};
inline constexpr Choice<MissingPolicy> kMissingPolicies[] = {
    {MissingPolicy::error, "error", "an error"},
    {MissingPolicy::drop, "drop", "the row is left out"},
    {MissingPolicy::mean, "mean", "the mean of the column"},
};

enum class CategoryPolicy {
  one_hot,  // a 0/1 feature for each value, named column=value
  ordinal,  // 0, 1, ... in sorted order
  error,    // fail on text
};
inline constexpr Choice<CategoryPolicy> kCategoryPolicies[] = {
    {CategoryPolicy::one_hot, "one-hot", "a 0/1 feature for each value"},
    {CategoryPolicy::ordinal, "ordinal", "0, 1, ... in sorted order"},
    {CategoryPolicy::error, "error", "an error"},
};

enum class Targets {
  present,
  absent,  // rows to predict, from a text table; the result has one target, which is 0
};

// A column is given by its name, else by its number: 0 is the first, -1 the last.
using ColumnName = std::string;

struct RowSource {
  Task task = Task::regression;

  std::filesystem::path path;  // empty: formulas
  RowFormat format = RowFormat::automatic;
  std::vector<ColumnName> target = {"-1"};  // one for classification
  Targets targets = Targets::present;
  std::vector<ColumnName> drop;         // columns to leave out
  std::vector<ColumnName> categorical;  // columns of numbers that are names
  ColumnName weight;                    // column of sample weights; empty: none
  CsvOptions csv;
  MissingPolicy missing = MissingPolicy::error;
  std::vector<std::string> missing_words = {"", "?", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None"};
  CategoryPolicy categories = CategoryPolicy::one_hot;
  std::string npz_x = "x", npz_y = "y";  // arrays of an .npz; an empty npz_y takes `target` from the columns of x
  std::filesystem::path labels;          // of an IDX file; empty: the file of that name beside it (idx_labels_name)
  std::size_t max_bytes = std::size_t{4} << 30;  // of the file, and of its content once inflated

  FormulaOptions formula;  // used when path is empty
};

// Text columns become features by `categories`; a column that is mostly numbers with some text in it is an error,
// because it is a typo more often than a category. Classes are the distinct labels, sorted (by value when all are
// numbers). Fails with not_found, io, invalid_input, numeric (formulas); messages name file, line and column. Every
// value of the result is finite.
Result<RowDataset<double>> load_rows(const RowSource& source);

// load_rows() with what it learned of the columns. A file that is read by the code of another one (`known`) has that
// one's categories and means; a category that it does not know is an error. Formulas take no code.
Result<LoadedRows> load_coded_rows(const RowSource& source, const RowCode* known = nullptr);

// Whether the source is a text table, and that table as it stands in the file. Fails with not_found, io, invalid_input.
bool is_text_table(const RowSource& source);
Result<CsvTable> read_table(const RowSource& source);

// The part of load_coded_rows() after a text table was read. With a `known` code the features are its columns, by name,
// and every other column needs another role in `source`.
Result<LoadedRows> rows_from_table(const CsvTable& table, const RowSource& source, const RowCode* known = nullptr);

}  // namespace gradloom
