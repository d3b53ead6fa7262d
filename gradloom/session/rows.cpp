#include "gradloom/session/rows.h"

#include <fmt/format.h>

#include "gradloom/data/split.h"

namespace gradloom {

Result<RowSplits> split_rows(const LoadedRows& loaded, const RowDataOptions& data, std::uint64_t seed) {
  const RowDataset<double>& rows = loaded.rows;
  if (rows.is_classification() && rows.outputs() < 2)
    return Error{ErrorCode::invalid_input, fmt::format("every sample has the class '{}'; there is nothing to learn",
                                                       rows.outputs() == 1 ? rows.class_names()[0] : "")};
  Split split;
  if (data.folds > 0) {
    if (data.folds < 2 || data.fold >= data.folds || data.folds > rows.size())
      return Error{ErrorCode::invalid_input,
                   fmt::format("data.fold = {} of data.folds = {} does not exist for {} samples; folds "
                               "are 2 to the number of samples, counted from 0",
                               data.fold, data.folds, rows.size())};
    split = make_fold(rows.size(), data.folds, data.fold, seed, rows.parts().label);
    hold_out(split, data.validation, seed, rows.parts().label);
  } else {
    if (data.validation + data.test >= 1.0)
      return Error{
          ErrorCode::invalid_input,
          fmt::format("data.validation = {} and data.test = {} leave nothing to train on", data.validation, data.test)};
    split = make_split(rows.size(), SplitFractions{1.0 - data.validation - data.test, data.validation, data.test}, seed,
                       rows.parts().label);
  }
  if (split.train.empty())
    return Error{ErrorCode::invalid_input,
                 fmt::format("{} samples leave nothing to train on after the split", rows.size())};
  RowSplits parts{rows.subset(split.train), std::nullopt, std::nullopt, loaded.code, {}, {}};
  if (!split.validation.empty()) parts.validation = rows.subset(split.validation);
  if (!split.test.empty()) parts.test = rows.subset(split.test);
  return parts;
}

RowSplits no_rows(const ModelDescription& description) {
  if (description.features.empty() || description.targets.empty() == description.classes.empty() ||
      description.classes.size() == 1)
    throw_invalid(
        fmt::format("a model of rows has features, and targets or several classes, not {} features, {} "
                    "targets and {} classes",
                    description.features.size(), description.targets.size(), description.classes.size()));
  RowParts<double> parts;
  parts.features = description.features.size();
  parts.targets = description.targets.size();
  parts.feature_names = description.features;
  parts.target_names = description.targets;
  parts.class_names = description.classes;
  return {RowDataset<double>(std::move(parts)), std::nullopt, std::nullopt, {}, {}, {}};
}

}  // namespace gradloom
