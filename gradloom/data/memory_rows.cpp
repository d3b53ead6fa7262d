#include "gradloom/data/memory_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "gradloom/base/error.h"
#include "gradloom/data/labels.h"

namespace gradloom {
namespace {

void check_columns(std::string_view what, std::size_t columns, const std::vector<std::string>& names,
                   std::string_view of) {
  if (!names.empty() && names.size() != columns)
    throw_invalid(fmt::format("{} has {} columns, {} {}", what, columns, of, names.size()));
}

void check_rows_of(std::string_view what, std::size_t rows, const MatrixView& x) {
  if (rows != x.rows()) throw_invalid(fmt::format("{} has {} rows, x has {}", what, rows, x.rows()));
}

}  // namespace

std::size_t MatrixView::rows_of(std::size_t values, std::size_t columns) {
  if (columns == 0) throw_invalid("a matrix of 0 columns has no values");
  if (values % columns != 0) throw_invalid(fmt::format("{} values are not a multiple of {} columns", values, columns));
  return values / columns;
}

std::vector<double> MatrixView::finite_values(std::string_view what) const {
  std::vector<double> values;
  values.reserve(rows() * columns());
  std::visit(
      [&](const auto& view) {
        for (std::size_t r = 0; r < rows(); ++r)
          for (std::size_t c = 0; c < columns(); ++c) {
            const auto value = static_cast<double>(view(r, c));
            if (!std::isfinite(value))
              throw_invalid(fmt::format("{}: the value in row {}, column {} (from 0) is {}; it must be finite", what, r,
                                        c, value));
            values.push_back(value);
          }
      },
      view_);
  return values;
}

RowDataset<double> rows_from_memory(const MatrixView& x, const TargetView& y, const MemoryRowNames& names,
                                    std::span<const double> weights) {
  if (x.rows() == 0 || x.columns() == 0)
    throw_invalid(fmt::format("x has {} rows and {} columns; there is nothing to learn from", x.rows(), x.columns()));
  check_rows_of("y", y.rows(), x);
  check_columns("x", x.columns(), names.features, "features has names for");
  RowParts<double> parts;
  parts.size = x.rows();
  parts.features = x.columns();
  parts.x = x.finite_values("x");
  parts.feature_names = names.features;
  if (y.are_classes()) {
    if (!names.targets.empty())
      throw_invalid(fmt::format("targets names '{}', but y holds classes", names.targets.front()));
    const std::vector<std::string_view> words(y.labels().begin(), y.labels().end());
    Labels encoded = encode_labels(words);
    parts.label = std::move(encoded.index);
    parts.class_names = std::move(encoded.names);
  } else {
    if (y.targets().columns() == 0) throw_invalid("y has 0 columns; there is nothing to learn");
    check_columns("y", y.targets().columns(), names.targets, "targets has names for");
    parts.targets = y.targets().columns();
    parts.target = y.targets().finite_values("y");
    parts.target_names = names.targets;
  }
  if (!weights.empty()) {
    check_rows_of("weights", weights.size(), x);
    for (std::size_t s = 0; s < weights.size(); ++s)
      if (!(weights[s] >= 0) || !std::isfinite(weights[s]))
        throw_invalid(fmt::format("weights: the weight of row {} (from 0) is {}; it must be 0 or more", s, weights[s]));
    parts.weight.assign(weights.begin(), weights.end());
  }
  return RowDataset<double>(std::move(parts));
}

RowDataset<double> new_rows_from_memory(const RowDataset<double>& model, const MatrixView& x, const TargetView* y) {
  const RowParts<double>& like = model.parts();
  if (x.columns() != like.features)
    throw_invalid(fmt::format("x has {} columns, the model {} features", x.columns(), like.features));
  RowParts<double> parts;
  parts.size = x.rows();
  parts.features = like.features;
  parts.targets = like.targets;
  parts.x = x.finite_values("x");
  parts.feature_names = like.feature_names;
  parts.target_names = like.target_names;
  parts.class_names = like.class_names;
  const bool classes = like.targets == 0;
  if (y) check_rows_of("y", y->rows(), x);
  if (y && x.rows() == 0) throw_invalid("x has 0 rows; there is nothing to measure");
  if (y && y->are_classes() != classes)
    throw_invalid(fmt::format("y holds {}, the model predicts {}", y->are_classes() ? "classes" : "numbers",
                              classes ? "classes" : "numbers"));
  if (!classes) {
    if (y && y->targets().columns() != like.targets)
      throw_invalid(fmt::format("y has {} columns, the model {} targets", y->targets().columns(), like.targets));
    parts.target = y ? y->targets().finite_values("y") : std::vector<double>(parts.size * parts.targets);
    return RowDataset<double>(std::move(parts));
  }
  parts.label.resize(parts.size);
  const LabelIndex known(like.class_names);
  for (std::size_t s = 0; y && s < parts.size; ++s) {
    const auto found = known.find(y->labels()[s]);
    if (!found)
      throw_invalid(fmt::format("y: the class '{}' of row {} (from 0) is not one of the model's: {}", y->labels()[s], s,
                                fmt::join(like.class_names, ", ")));
    parts.label[s] = *found;
  }
  return RowDataset<double>(std::move(parts));
}

}  // namespace gradloom
