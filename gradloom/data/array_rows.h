// From arrays of numbers to rows: the part of load_coded_rows() after an .npy or .npz file was read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gradloom/data/npy.h"
#include "gradloom/data/source.h"

namespace gradloom {

struct RowMatrix {
  std::string source;  // its name in messages
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;     // (rows, columns)
  std::vector<std::string> wide;  // the same as text, where integers are too large for a double; else empty
};

// All dimensions after the first become columns; a vector is one column. Throws when there are no rows.
RowMatrix to_row_matrix(const NpyArray& array, std::string source);

// The targets are columns of `y`, or of `x` where that is null. With a `known` code and without `y`, an `x` of as many
// columns as there are features has no targets. Throws invalid_input, naming row and column.
LoadedRows rows_from_arrays(const RowMatrix& x, const RowMatrix* y, const RowSource& source, const RowCode* known);

}  // namespace gradloom
