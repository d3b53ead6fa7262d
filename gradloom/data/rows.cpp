#include "gradloom/data/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

void require(bool ok, const std::string& message) {
  if (!ok) throw_invalid(message);
}

void check_size(const char* what, std::size_t actual, std::size_t expected) {
  require(actual == expected, fmt::format("a dataset's {} has {} values, but {} are needed", what, actual, expected));
}

template <class T>
void copy_rows(std::span<const std::uint32_t> rows, const std::vector<T>& from, std::size_t columns,
               std::vector<T>& to) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(rows[i] * columns), columns,
                to.begin() + static_cast<std::ptrdiff_t>(i * columns));
}

template <class T>
View<const T, 2> matrix(const std::vector<T>& values, std::size_t rows, std::size_t columns) {
  return columns == 0 ? View<const T, 2>() : View<const T, 2>(values.data(), {rows, columns});
}

// A value that double can hold and T cannot.
template <class T>
void check_range(const std::vector<double>& values, std::size_t columns, const std::vector<std::string>& names,
                 const char* what) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::abs(values[i]) > static_cast<double>(std::numeric_limits<T>::max()))
      throw_invalid(
          fmt::format("row {} (from 0), {} '{}': {} is too large for float32; set precision = \"float64\" "
                      "or scale the column",
                      i / columns, what, i % columns < names.size() ? names[i % columns] : "", values[i]));
}

constexpr double kMargin = 16;  // of squares to the ends of the range

// Kernels compute with 0 for what is below the least normal number. Weights multiply squared errors and are divided by
// their sum, so that the largest ones need a distance from both ends of the range; smaller ones count for less anyway.
template <class T>
void check_weights(const std::vector<double>& weights) {
  constexpr double kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  const char* name = sizeof(T) == sizeof(float) ? "float32" : "float64";
  const char* remedy = sizeof(T) == sizeof(float) ? ", or set precision = \"float64\"" : "";
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] != 0 && !(weights[i] >= kLeast && weights[i] <= kMost))
      throw_invalid(
          fmt::format("row {} (from 0): the weight {} is out of the range of {}, which is {:.3g} to "
                      "{:.3g}: it would be {}; scale the weights{}",
                      i, weights[i], name, kLeast, kMost, weights[i] < kLeast ? "0" : "infinite", remedy));
  const double largest = weights.empty() ? 0.0 : *std::max_element(weights.begin(), weights.end());
  const double low = kMargin * std::sqrt(kLeast), high = std::sqrt(kMost) / kMargin;
  if (largest == 0.0 || (largest >= low && largest <= high)) return;
  throw_invalid(
      fmt::format("the largest weight is {:.3g}: its products with errors would be {} in {}, which allows "
                  "largest weights of {:.3g} to {:.3g}; scale the weights{}",
                  largest, largest < low ? "0" : "infinite", name, low, high, remedy));
}

struct Extent {
  double low = 0, high = 0;
};

// The least and greatest value of a column; there is one row at least.
Extent extent_of(const std::vector<double>& values, std::size_t columns, std::size_t c) {
  Extent e{values[c], values[c]};
  for (std::size_t i = c; i < values.size(); i += columns)
    e.low = std::min(e.low, values[i]), e.high = std::max(e.high, values[i]);
  return e;
}

// Values of a column differ by less, or by more, than T can compute with: inputs are divided by their spread, errors of
// targets are squared.
template <class T>
void check_spread(Extent e, std::string_view column, double least, double most) {
  const double spread = e.high - e.low;
  if (spread == 0.0 || (spread >= least && spread <= most)) return;
  const char* remedy = sizeof(T) == sizeof(float) ? "float32; set precision = \"float64\" or scale the values"
                                                  : "float64; scale the values";
  throw_invalid(fmt::format("{}: the values differ by at most {:.3g}, which is too {} for {}", column, spread,
                            spread < least ? "little" : "much", remedy));
}

template <class Check>
void check_extents(const std::vector<double>& values, std::size_t columns, const std::vector<std::string>& names,
                   const char* what, const Check& check) {
  for (std::size_t c = 0; c < columns && !values.empty(); ++c)
    check(extent_of(values, columns, c), fmt::format("{} '{}'", what, c < names.size() ? names[c] : ""));
}

template <class T>
std::vector<T> cast(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

std::vector<double> centred(std::vector<double> values, const std::vector<double>& centre) {
  for (std::size_t i = 0; i < values.size() && !centre.empty(); ++i) values[i] -= centre[i % centre.size()];
  return values;
}

// Empty when every centre is 0.
template <class T>
std::vector<double> centres_of(const std::vector<double>& values, std::size_t columns) {
  std::vector<double> centre(columns, 0.0);
  bool any = false;
  for (std::size_t c = 0; c < columns && !values.empty(); ++c) {
    const Extent e = extent_of(values, columns, c);
    centre[c] = choose_centre<T>(e.low, e.high);
    any = any || centre[c] != 0.0;
  }
  return any ? centre : std::vector<double>();
}

template <class V>
std::size_t count_distinct(std::vector<V> values) {
  std::sort(values.begin(), values.end());
  return static_cast<std::size_t>(std::unique(values.begin(), values.end()) - values.begin());
}

void warn_of_columns(const std::vector<double>& values, std::size_t columns, const std::vector<std::string>& names,
                     const char* what, std::vector<std::string>& warnings) {
  for (std::size_t c = 0; c < columns; ++c) {
    std::vector<double> column;
    for (std::size_t i = c; i < values.size(); i += columns) column.push_back(values[i]);
    if (std::string warning = float32_warning(std::move(column), what, names[c]); !warning.empty())
      warnings.push_back(std::move(warning));
  }
}

}  // namespace

template <class T>
RowBatchStorage<T>::RowBatchStorage(const RowDataset<T>& dataset, std::size_t max_size)
    : max_size_(max_size),
      x_(max_size * dataset.features()),
      target_(max_size * dataset.parts().targets),
      weight_(dataset.parts().weight.empty() ? 0 : max_size),
      label_(dataset.is_classification() ? max_size : 0) {}

template <class T>
RowDataset<T>::RowDataset(RowParts<T> parts) : parts_(std::move(parts)) {
  RowParts<T>& p = parts_;
  require(p.size <= std::numeric_limits<std::uint32_t>::max(),
          fmt::format("a dataset has {} rows, above 2^32 - 1", p.size));
  check_size("x", p.x.size(), p.size * p.features);
  check_size("target", p.target.size(), p.size * p.targets);
  check_size("label", p.label.size(), p.targets == 0 ? p.size : 0);
  require(p.targets > 0 || !p.class_names.empty(), "a dataset needs targets, or labels and the names of their classes");
  if (!p.weight.empty()) check_size("weight", p.weight.size(), p.size);
  for (std::uint32_t label : p.label)
    if (label >= p.class_names.size())
      throw_invalid(fmt::format("the label {} has no class name; there are {}", label, p.class_names.size()));
  if (p.feature_names.empty())
    for (std::size_t i = 0; i < p.features; ++i) p.feature_names.push_back(fmt::format("x{}", i + 1));
  if (p.target_names.empty())
    for (std::size_t i = 0; i < p.targets; ++i) p.target_names.push_back(fmt::format("y{}", i + 1));
  check_size("feature names", p.feature_names.size(), p.features);
  if (p.targets > 0) check_size("target names", p.target_names.size(), p.targets);
  if (!p.centre.x.empty()) check_size("centres of features", p.centre.x.size(), p.features);
  if (!p.centre.target.empty()) check_size("centres of targets", p.centre.target.size(), p.targets);
  if (!p.exact_target.empty()) check_size("exact targets", p.exact_target.size(), p.size * p.targets);
}

template <class T>
RowBatch<T> RowDataset<T>::all() const {
  return {parts_.size,
          matrix(parts_.x, parts_.size, parts_.features),
          matrix(parts_.target, parts_.size, parts_.targets),
          parts_.label,
          {},
          parts_.weight};
}

template <class T>
void RowDataset<T>::check_rows(std::span<const std::uint32_t> rows) const {
  // The message is made only when it is needed: gather() calls this in every training step, which allocates nothing.
  for (std::uint32_t row : rows)
    if (row >= parts_.size) throw_invalid(fmt::format("row {} does not exist; the dataset has {}", row, parts_.size));
}

template <class T>
RowBatch<T> RowDataset<T>::gather(std::span<const std::uint32_t> rows, RowBatchStorage<T>& storage) const {
  const std::size_t n = rows.size();
  if (n > storage.max_size_) throw_invalid(fmt::format("{} rows do not fit into a batch of {}", n, storage.max_size_));
  const std::size_t max = storage.max_size_;
  const bool same_shape = storage.x_.size() == max * parts_.features &&
                          storage.target_.size() == max * parts_.targets &&
                          storage.weight_.size() == (parts_.weight.empty() ? 0 : max);
  if (!same_shape) throw_invalid("the batch storage was made for a dataset of another shape");
  check_rows(rows);
  copy_rows(rows, parts_.x, parts_.features, storage.x_);
  copy_rows(rows, parts_.target, parts_.targets, storage.target_);
  if (!parts_.label.empty()) copy_rows(rows, parts_.label, 1, storage.label_);
  if (!parts_.weight.empty()) copy_rows(rows, parts_.weight, 1, storage.weight_);
  RowBatch<T> batch;
  batch.size = n;
  batch.x = matrix(storage.x_, n, parts_.features);
  batch.target = matrix(storage.target_, n, parts_.targets);
  if (!parts_.label.empty()) batch.label = std::span(storage.label_).first(n);
  if (!parts_.weight.empty()) batch.weight = std::span(storage.weight_).first(n);
  return batch;
}

template <class T>
RowDataset<T> RowDataset<T>::subset(std::span<const std::uint32_t> rows) const {
  check_rows(rows);
  RowParts<T> p;
  p.size = rows.size();
  p.features = parts_.features;
  p.targets = parts_.targets;
  p.feature_names = parts_.feature_names;
  p.target_names = parts_.target_names;
  p.class_names = parts_.class_names;
  p.centre = parts_.centre;
  p.exact_target.resize(parts_.exact_target.empty() ? 0 : p.size * p.targets);
  if (!parts_.exact_target.empty()) copy_rows(rows, parts_.exact_target, p.targets, p.exact_target);
  p.x.resize(p.size * p.features);
  p.target.resize(p.size * p.targets);
  copy_rows(rows, parts_.x, p.features, p.x);
  copy_rows(rows, parts_.target, p.targets, p.target);
  if (is_classification()) {
    p.label.resize(p.size);
    copy_rows(rows, parts_.label, 1, p.label);
  }
  if (!parts_.weight.empty()) {
    p.weight.resize(p.size);
    copy_rows(rows, parts_.weight, 1, p.weight);
  }
  return RowDataset(std::move(p));
}

template <class T>
double choose_centre(double low, double high) {
  constexpr int kResolvedBits = 18;
  const double largest = std::max(std::abs(low), std::abs(high));
  if (!(std::ldexp(high - low, std::numeric_limits<T>::digits - kResolvedBits) < largest) || low == high) return 0.0;
  return low + (high - low) / 2;
}

template <class T>
void check_target_spread(double low, double high, std::string_view column) {
  constexpr double kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  check_spread<T>({low, high}, column, kMargin * std::sqrt(kLeast), std::sqrt(kMost) / kMargin);
}

template <class T>
RowCentres choose_centres(const RowDataset<double>& training) {
  const RowParts<double>& p = training.parts();
  return {centres_of<T>(p.x, p.features), centres_of<T>(p.target, p.targets)};
}

template <class T>
RowDataset<T> convert(const RowDataset<double>& rows, const RowCentres& centre) {
  const RowParts<double>& p = rows.parts();
  const std::vector<double> x = centred(p.x, centre.x);
  std::vector<double> target = centred(p.target, centre.target);
  check_weights<T>(p.weight);
  check_range<T>(x, p.features, p.feature_names, "input");
  check_range<T>(target, p.targets, p.target_names, "target");
  check_extents(x, p.features, p.feature_names, "input", [](Extent e, std::string_view column) {
    check_spread<T>(e, column, kMargin * static_cast<double>(std::numeric_limits<T>::min()),
                    std::numeric_limits<T>::max());
  });
  check_extents(target, p.targets, p.target_names, "target",
                [](Extent e, std::string_view column) { check_target_spread<T>(e.low, e.high, column); });
  RowParts<T> parts{p.size,
                    p.features,
                    p.targets,
                    cast<T>(x),
                    cast<T>(target),
                    p.label,
                    cast<T>(p.weight),
                    p.feature_names,
                    p.target_names,
                    p.class_names,
                    centre,
                    {}};
  if (sizeof(T) < sizeof(double) && !centre.target.empty()) parts.exact_target = std::move(target);
  return RowDataset<T>(std::move(parts));
}

std::string float32_warning(std::vector<double> column, std::string_view what, std::string_view name) {
  constexpr std::size_t kEnough = 65536;
  const auto rounded = [](double v) { return static_cast<double>(static_cast<float>(v)) != v; };
  if (std::none_of(column.begin(), column.end(), rounded)) return "";
  if (column.size() > 2 * kEnough &&  // most long columns show enough in their beginning
      count_distinct(std::vector<float>(column.begin(), column.begin() + 2 * kEnough)) >= kEnough)
    return "";
  const std::size_t held = count_distinct(cast<float>(column)), all = count_distinct(std::move(column));
  if (held >= kEnough || 2 * held >= all) return "";
  return fmt::format(
      "{} '{}' has {} different values, of which float32 distinguishes {}; precision = \"float64\" distinguishes all",
      what, name, all, held);
}

std::vector<std::string> float32_warnings(const RowDataset<double>& rows, const RowCentres& centre) {
  const RowParts<double>& p = rows.parts();
  std::vector<std::string> warnings;
  warn_of_columns(centred(p.x, centre.x), p.features, p.feature_names, "input", warnings);
  warn_of_columns(centred(p.target, centre.target), p.targets, p.target_names, "target", warnings);
  return warnings;
}

template <class T>
ColumnStatistics column_statistics(View<const T, 2> x) {
  const std::size_t rows = x.extent(0), columns = x.extent(1);
  ColumnStatistics s{std::vector<double>(columns, 0.0), std::vector<double>(columns, 0.0)};
  // Rounding gives a constant column a tiny standard deviation, so constants are found by comparing.
  std::vector<bool> varies(columns, false);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      s.mean[c] += static_cast<double>(x(r, c));
      if (x(r, c) != x(0, c)) varies[c] = true;
    }
  for (std::size_t c = 0; c < columns && rows > 0; ++c)
    s.mean[c] = varies[c] ? s.mean[c] / static_cast<double>(rows) : static_cast<double>(x(0, c));
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      const double d = static_cast<double>(x(r, c)) - s.mean[c];
      s.std[c] += d * d;
    }
  for (std::size_t c = 0; c < columns; ++c) {
    s.std[c] = std::sqrt(s.std[c] / static_cast<double>(std::max<std::size_t>(rows, 1)));
    if (!varies[c] || s.std[c] == 0.0) s.std[c] = 1.0;
  }
  return s;
}

template class RowBatchStorage<float>;
template class RowBatchStorage<double>;
template class RowDataset<float>;
template class RowDataset<double>;
template double choose_centre<float>(double, double);
template double choose_centre<double>(double, double);
template void check_target_spread<float>(double, double, std::string_view);
template void check_target_spread<double>(double, double, std::string_view);
template RowCentres choose_centres<float>(const RowDataset<double>&);
template RowCentres choose_centres<double>(const RowDataset<double>&);
template RowDataset<float> convert(const RowDataset<double>&, const RowCentres&);
template RowDataset<double> convert(const RowDataset<double>&, const RowCentres&);
template ColumnStatistics column_statistics(View<const float, 2>);
template ColumnStatistics column_statistics(View<const double, 2>);

}  // namespace gradloom
