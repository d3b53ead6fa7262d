// Rows of numbers in memory of the caller, and the data set made of them.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gradloom/base/view.h"
#include "gradloom/data/rows.h"

namespace gradloom {

// A vector, array or span of numbers.
template <class R>
concept NumberRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                      std::floating_point<std::ranges::range_value_t<R>> &&
                      sizeof(std::ranges::range_value_t<R>) <= sizeof(double);

// A matrix of float or double; owns nothing.
class MatrixView {
 public:
  // Row by row without gaps. Throws invalid_input when the values do not fill whole rows.
  template <NumberRange R>
  MatrixView(const R& values, std::size_t columns)
      : MatrixView(View<const std::ranges::range_value_t<R>, 2>(
            std::ranges::data(values), {rows_of(std::ranges::size(values), columns), columns})) {}
  // With strides.
  MatrixView(View<const float, 2> view) : view_(view) {}
  MatrixView(View<const double, 2> view) : view_(view) {}

  std::size_t rows() const { return extents()[0]; }
  std::size_t columns() const { return extents()[1]; }
  // All values, row by row. Throws invalid_input, naming `what`, row and column, on a value that is not finite.
  std::vector<double> finite_values(std::string_view what) const;

 private:
  static std::size_t rows_of(std::size_t values, std::size_t columns);
  std::array<std::size_t, 2> extents() const {
    return std::visit([](const auto& view) { return view.extents(); }, view_);
  }

  std::variant<View<const float, 2>, View<const double, 2>> view_;
};

// Targets or classes: floating-point numbers are targets, integers and strings are classes.
class TargetView {
 public:
  template <NumberRange R>
  TargetView(const R& one_target, std::size_t columns = 1) : targets_(MatrixView(one_target, columns)) {}
  TargetView(MatrixView targets) : targets_(targets) {}
  template <std::ranges::input_range R>
  requires std::integral<std::ranges::range_value_t<R>> TargetView(const R& labels) {
    for (const auto label : labels) labels_.push_back(std::to_string(label));
  }
  template <std::ranges::input_range R>
  requires std::convertible_to<std::ranges::range_value_t<R>, std::string_view> TargetView(const R& class_names) {
    for (const auto& name : class_names) labels_.emplace_back(std::string_view(name));
  }

  bool are_classes() const { return !targets_; }
  std::size_t rows() const { return targets_ ? targets_->rows() : labels_.size(); }
  const MatrixView& targets() const { return *targets_; }             // unless are_classes()
  const std::vector<std::string>& labels() const { return labels_; }  // of each row, if are_classes()

 private:
  std::optional<MatrixView> targets_;
  std::vector<std::string> labels_;
};

// Names that go with rows in memory.
struct MemoryRowNames {
  std::vector<std::string> features;  // empty: x1, x2, ...
  std::vector<std::string> targets;   // empty: y1, y2, ...
};

// The data set of x and y, copied. `weights` are those of the rows, or empty. Throws invalid_input on rows or names
// that do not fit together, on no row, and on values that are not finite.
RowDataset<double> rows_from_memory(const MatrixView& x, const TargetView& y, const MemoryRowNames& names = {},
                                    std::span<const double> weights = {});

// New rows for a model of these features, targets and classes (`like`; its rows do not matter). Without y,
// there may be no row, and targets and labels are zeros. Throws as above, and on a class that `like` does not have.
RowDataset<double> new_rows_from_memory(const RowDataset<double>& like, const MatrixView& x, const TargetView* y);

}  // namespace gradloom
