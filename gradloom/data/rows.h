// RowDataset: a table of samples in memory, its batches and its statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/data/batch.h"

namespace gradloom {

// What was subtracted from the columns before their values were rounded to T. Empty: nothing from any column.
struct RowCentres {
  std::vector<double> x;       // (In)
  std::vector<double> target;  // (Out)
  bool operator==(const RowCentres&) const = default;
};

// What a RowDataset is made of. N samples, In features, Out targets.
template <class T>
struct RowParts {
  std::size_t size = 0;                    // N
  std::size_t features = 0;                // In
  std::size_t targets = 0;                 // Out; 0 for classification
  std::vector<T> x;                        // (N, In)
  std::vector<T> target;                   // (N, Out)
  std::vector<std::uint32_t> label;        // (N) for classification, else empty; below class_names.size()
  std::vector<T> weight;                   // (N), or empty: all 1
  std::vector<std::string> feature_names;  // In, or empty: x1, x2, ...
  std::vector<std::string> target_names;   // Out, or empty
  std::vector<std::string> class_names;    // for classification
  RowCentres centre;                       // value in the file = x + centre; likewise for targets
  std::vector<double> exact_target;        // (N, Out) before rounding, without their centre; empty: as `target`
};

template <class T>
class RowDataset;

// Memory for batches of up to `max_size` samples of one dataset (or of another one of the same shape).
template <class T>
class RowBatchStorage {
 public:
  RowBatchStorage(const RowDataset<T>& dataset, std::size_t max_size);
  std::size_t max_size() const { return max_size_; }

 private:
  friend class RowDataset<T>;
  std::size_t max_size_;
  std::vector<T> x_, target_, weight_;
  std::vector<std::uint32_t> label_;
};

// Immutable. Instantiated for float and double.
template <class T>
class RowDataset {
 public:
  using Storage = RowBatchStorage<T>;

  // Throws when sizes disagree, or when there are neither targets nor labels.
  explicit RowDataset(RowParts<T> parts);

  std::size_t size() const { return parts_.size; }
  std::size_t features() const { return parts_.features; }
  std::size_t outputs() const { return is_classification() ? parts_.class_names.size() : parts_.targets; }
  bool is_classification() const { return parts_.targets == 0; }
  const std::vector<std::string>& feature_names() const { return parts_.feature_names; }
  const std::vector<std::string>& target_names() const { return parts_.target_names; }
  const std::vector<std::string>& class_names() const { return parts_.class_names; }
  const RowParts<T>& parts() const { return parts_; }
  // The target without its centre; of centred targets as it was before it was rounded to T.
  double exact_target(std::size_t s, std::size_t j) const {
    const std::size_t at = s * parts_.targets + j;
    return parts_.exact_target.empty() ? static_cast<double>(parts_.target[at]) : parts_.exact_target[at];
  }

  Storage make_storage(std::size_t max_size) const { return Storage(*this, max_size); }

  // All rows, without copying.
  RowBatch<T> all() const;

  // Copies rows into `storage` and returns a view on it; never allocates. Throws when a row does not exist or there are
  // more rows than the storage holds.
  RowBatch<T> gather(std::span<const std::uint32_t> rows, RowBatchStorage<T>& storage) const;

  // A dataset of these rows, in this order; rows may repeat.
  RowDataset subset(std::span<const std::uint32_t> rows) const;

 private:
  void check_rows(std::span<const std::uint32_t> rows) const;

  RowParts<T> parts_;
};

// The centre of every column of training rows that T would resolve too coarsely: the middle of its least and greatest
// value, where T leaves less than 18 bits for their difference; 0 for all other columns and for constant ones. In
// float32 those are the columns whose values exceed 64 times their spread. Subtracting it is exact in double.
template <class T>
RowCentres choose_centres(const RowDataset<double>& training);

// The same of one column by its least and greatest value; 0: it is not centred.
template <class T>
double choose_centre(double low, double high);

// Throws invalid_input, naming `column`, when T cannot compute with the squares of differences of these targets.
template <class T>
void check_target_spread(double low, double high, std::string_view column);

// The same rows in another precision, without their centres; centred targets are also kept as they were before. Throws
// invalid_input, naming row and column, when T cannot hold a value or a weight, or compute with the spread of a column.
template <class T>
RowDataset<T> convert(const RowDataset<double>& rows, const RowCentres& centre = {});

// A sentence for each column that float32 cannot hold although it was centred: less than half of its different values,
// and fewer than 65536 of them, stay different.
std::vector<std::string> float32_warnings(const RowDataset<double>& rows, const RowCentres& centre);

// The same of one column of another data set, by all of its values; empty: float32 holds them.
std::string float32_warning(std::vector<double> column, std::string_view what, std::string_view name);

// Per column: mean and standard deviation (divided by N). A constant or empty column has std 1, so that (x - mean)/std
// is defined. Sums run over the rows in order, in double.
struct ColumnStatistics {
  std::vector<double> mean, std;
};

template <class T>
ColumnStatistics column_statistics(View<const T, 2> x);

}  // namespace gradloom
