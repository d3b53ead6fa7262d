#include "gradloom/data/array_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/data/labels.h"

namespace gradloom {
namespace {

[[noreturn]] void fail_array(const std::string& source, const std::string& message) {
  throw_invalid(fmt::format("{}: {}", source, message));
}

// `key` is what asked for the column, as a recipe names it.
std::size_t column_of(const ColumnName& name, const RowMatrix& m, std::string_view key) {
  const auto width = static_cast<long long>(m.columns);
  double number = 0;
  if (!parse_number(name, number) || number != std::floor(number) || number < static_cast<double>(-width) ||
      number >= static_cast<double>(width))
    fail_array(
        m.source,
        fmt::format(
            "{} names the column '{}', which does not exist; columns of arrays have numbers, here 0 to {}, or -1 "
            "to -{} from the end",
            key, name, width - 1, width));
  return static_cast<std::size_t>(number < 0 ? number + static_cast<double>(width) : number);
}

// Columns keep their order, apart from those with another purpose.
class ArrayEncoder {
 public:
  ArrayEncoder(const RowMatrix& x, const RowMatrix* y, const RowSource& source, const RowCode* known)
      : x_(x), y_(y ? *y : x), source_(source), known_(known) {
    if (known && !y && x.columns == known->features.size())
      choose_features_alone();
    else
      choose_columns(y == nullptr);
  }

  LoadedRows run() {
    for (std::size_t r = 0; r < x_.rows; ++r) take_row(r);
    if (parts_.size == 0) fail_array(x_.source, "every row has a missing value, so no row is left");
    RowCode code = known_ ? *known_ : learn();
    if (code.features.size() != parts_.features)
      fail_array(x_.source,
                 fmt::format("has {} features, the training file {}", parts_.features, code.features.size()));
    fill(code);
    if (targets_.empty()) {
      parts_.targets = 1;
      parts_.target.assign(parts_.size, 0.0);
      parts_.weight.clear();
    } else if (source_.task == Task::classification) {
      Labels encoded = y_.wide.empty() ? encode_labels(std::span<const double>(target_)) : encode_wide_labels();
      parts_.label = std::move(encoded.index);
      parts_.class_names = std::move(encoded.names);
    } else {
      parts_.targets = targets_.size();
      parts_.target = std::move(target_);
    }
    if (kept_.size() == x_.rows) kept_.clear();
    return {RowDataset<double>(std::move(parts_)), std::move(code), std::move(kept_), !targets_.empty()};
  }

 private:
  enum class Role { feature, target, weight, dropped };

  void assign(const ColumnName& name, Role role, std::string_view key) {
    Role& old = roles_[column_of(name, x_, key)];
    if (old != Role::feature)
      fail_array(
          x_.source,
          fmt::format("{} names the column {}, which data.target, data.drop or data.weight names already", key, name));
    old = role;
  }

  void choose_features_alone() {
    roles_.assign(x_.columns, Role::feature);
    parts_.features = x_.columns;
  }

  void choose_columns(bool targets_in_x) {
    if (!source_.categorical.empty())
      fail_array(x_.source, "data.categorical is for text files; the columns of an array are numbers");
    roles_.assign(x_.columns, Role::feature);
    if (targets_in_x) {
      for (const ColumnName& name : source_.target) {
        assign(name, Role::target, "data.target");
        targets_.push_back(column_of(name, x_, "data.target"));
      }
    } else {
      for (std::size_t c = 0; c < y_.columns; ++c) targets_.push_back(c);
    }
    for (const ColumnName& name : source_.drop) assign(name, Role::dropped, "data.drop");
    if (!source_.weight.empty()) assign(source_.weight, Role::weight, "data.weight");
    if (y_.rows != x_.rows)
      fail_array(x_.source, fmt::format("there are {} rows of features and {} of targets", x_.rows, y_.rows));
    if (targets_.empty()) fail_array(x_.source, "no target column is set (data.target)");
    if (source_.task == Task::classification && targets_.size() != 1)
      fail_array(x_.source, fmt::format("classification needs one target column, not {}", targets_.size()));
    parts_.features = static_cast<std::size_t>(std::count(roles_.begin(), roles_.end(), Role::feature));
    if (parts_.features == 0) fail_array(x_.source, "no column is left for the features");
  }

  // A value of the array. NaN is missing: only features may be filled in.
  double value(const RowMatrix& m, std::size_t r, std::size_t c, Role role) const {
    const double v = m.values[r * m.columns + c];
    const bool may_be_missing =
        source_.missing == MissingPolicy::drop || (source_.missing == MissingPolicy::mean && role == Role::feature);
    if (std::isfinite(v) || (std::isnan(v) && may_be_missing)) return v;
    fail_array(m.source,
               fmt::format("row {}, column {} (from 0) is {}; correct it, or leave the row or column out", r, c, v));
  }

  void take_row(std::size_t r) {
    std::vector<double> x, y;
    double weight = 1;
    for (std::size_t c = 0; c < x_.columns; ++c) {
      if (roles_[c] == Role::feature) x.push_back(value(x_, r, c, Role::feature));
      if (roles_[c] == Role::weight) weight = value(x_, r, c, Role::weight);
    }
    for (std::size_t c : targets_) y.push_back(value(y_, r, c, Role::target));
    const auto is_nan = [](double v) { return std::isnan(v); };
    if (source_.missing == MissingPolicy::drop &&
        (std::any_of(x.begin(), x.end(), is_nan) || std::any_of(y.begin(), y.end(), is_nan) || std::isnan(weight)))
      return;
    if (weight < 0) fail_array(x_.source, fmt::format("the weight of row {} is negative", r));
    parts_.x.insert(parts_.x.end(), x.begin(), x.end());
    target_.insert(target_.end(), y.begin(), y.end());
    if (!source_.weight.empty()) parts_.weight.push_back(weight);
    kept_.push_back(static_cast<std::uint32_t>(r));
    ++parts_.size;
  }

  Labels encode_wide_labels() const {
    std::vector<std::string_view> texts;
    for (const std::uint32_t r : kept_) texts.push_back(y_.wide[r * y_.columns + targets_[0]]);
    return encode_labels(texts);
  }

  RowCode learn() const {
    RowCode code;
    code.features.resize(parts_.features);
    for (std::size_t f = 0; f < parts_.features; ++f) {
      code.features[f].name = fmt::format("x{}", f + 1);
      if (source_.missing != MissingPolicy::mean) continue;
      double sum = 0, count = 0;
      for (std::size_t i = f; i < parts_.x.size(); i += parts_.features)
        if (!std::isnan(parts_.x[i])) sum += parts_.x[i], count += 1;
      code.features[f].means = {sum / count};
    }
    return code;
  }

  void fill(const RowCode& code) {
    for (std::size_t i = 0; i < parts_.x.size(); ++i) {
      if (!std::isnan(parts_.x[i])) continue;
      const std::size_t f = i % parts_.features;
      parts_.x[i] = code.features[f].means.at(0);
      if (!std::isfinite(parts_.x[i])) fail_array(x_.source, fmt::format("feature {} has no finite mean", f));
    }
  }

  const RowMatrix& x_;
  const RowMatrix& y_;  // where the targets are
  const RowSource& source_;
  const RowCode* known_;  // null: learn it
  std::vector<Role> roles_;
  std::vector<std::size_t> targets_;  // columns of y_
  std::vector<double> target_;
  std::vector<std::uint32_t> kept_;
  RowParts<double> parts_;
};

}  // namespace

RowMatrix to_row_matrix(const NpyArray& array, std::string source) {
  if (array.shape.empty()) fail_array(source, "the array is a single number; it must have rows");
  RowMatrix m{std::move(source), array.shape[0], 1, array.to_doubles(), array.to_wide_integers()};
  for (std::size_t d = 1; d < array.shape.size(); ++d) m.columns *= array.shape[d];
  if (m.rows == 0 || m.columns == 0) fail_array(m.source, "the array is empty");
  return m;
}

LoadedRows rows_from_arrays(const RowMatrix& x, const RowMatrix* y, const RowSource& source, const RowCode* known) {
  return ArrayEncoder(x, y, source, known).run();
}

}  // namespace gradloom
