// Rows of a second file in the columns and classes of the first.
#pragma once

#include "gradloom/base/result.h"
#include "gradloom/data/rows.h"

namespace gradloom {

// `rows` with the features, targets and classes of `like`, matched by name. Fails with invalid_input, naming what does
// not fit: a feature that one of them does not have, a class that `like` does not have, another kind of task.
Result<RowDataset<double>> align_rows(const RowDataset<double>& like, const RowDataset<double>& rows);

}  // namespace gradloom
