// The range of each feature in the training rows, and which rows leave it: there a model was never shown what to do.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "gradloom/base/view.h"

namespace gradloom {

template <class T>
struct ColumnRanges {
  std::vector<T> low, high;  // (In); empty: there were no rows
};

template <class T>
ColumnRanges<T> column_ranges(View<const T, 2> x);

// Rows with a feature outside of its range; 0 where there are no ranges.
template <class T>
std::size_t count_outside(const ColumnRanges<T>& ranges, View<const T, 2> x);

// Rows with a feature that is further outside of its range than three times its width, and the first such feature.
struct FarRows {
  std::size_t count = 0, row = 0, column = 0;
};
template <class T>
FarRows find_far_rows(const ColumnRanges<T>& ranges, View<const T, 2> x);

}  // namespace gradloom
