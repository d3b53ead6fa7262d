// Rows of a further file for a model that was trained on another one.
#pragma once

#include "gradloom/data/source.h"

namespace gradloom {

struct OtherRows {
  RowDataset<double> rows;  // in the features and classes of the training file
  bool has_targets = true;  // otherwise the targets are zeros that mean nothing
};

// `source` is what the training data were loaded from, `like` some of its rows. A text table with a header is matched
// by name. It may lack the target columns, all of them, and columns that are dropped. Fails as load_rows and align_rows
// do.
Result<OtherRows> load_other_rows(const RowSource& source, const RowDataset<double>& like,
                                  const std::filesystem::path& other);

}  // namespace gradloom
