// Rows of a new file for a model that was trained on another one.
#pragma once

#include "gradloom/data/source.h"

namespace gradloom {

template <class T>
struct NewRows {
  RowDataset<T> rows;                  // in the features and classes of the training file
  bool has_targets = true;             // otherwise the targets are zeros that mean nothing
  std::vector<std::uint32_t> numbers;  // of the rows in their file, from 1; empty: none was left out
};

// Whether a new file may lack the target columns.
enum class NewTargets { needed, optional };

// `source` is what the training data were loaded from, `training` some of its rows with their code: categories have
// its numbers, missing values its means. Text tables: where the training file has a header, so must the new one, and
// columns are matched by name; otherwise their places count. Columns that are dropped may be missing, and so may the
// weights where there are no targets. An array has the columns of the training array, or the features alone. A new
// file of a model of formulas has the
// variables, and beside them nothing or the targets, in their order. Fails as load_rows and align_rows do.
Result<NewRows<double>> load_new_rows(const RowSource& source, const LoadedRows& training,
                                      const std::filesystem::path& path, NewTargets wanted);

// The same of the text of a table, which is called `name` in messages.
Result<NewRows<double>> new_rows_from_text(const RowSource& source, const LoadedRows& training, std::string text,
                                           std::string_view name, NewTargets wanted);

}  // namespace gradloom
