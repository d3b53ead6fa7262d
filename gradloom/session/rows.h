// Rows in memory, in the three parts of a run: what families that learn from rows are opened from. They come from files
// (load_coded_rows) or from somebody else's memory (rows_from_memory).
#pragma once

#include <optional>

#include "gradloom/base/result.h"
#include "gradloom/data/binarise.h"
#include "gradloom/data/rows.h"
#include "gradloom/data/source.h"
#include "gradloom/session/model_file.h"
#include "gradloom/session/options/rows.h"

namespace gradloom {

struct RowSplits {
  RowDataset<double> train;
  std::optional<RowDataset<double>> validation, test;
  RowCode code;                 // how columns became features and classes
  std::vector<BitColumn> bits;  // of a trained classifier of gates; empty: they are chosen from the training rows
  std::optional<RowCentres> centres = {};  // of a trained model; none: they are chosen from the training rows
  std::vector<FeatureRange> ranges = {};   // of a trained model; empty: they are those of the training rows
};

// What a model of rows keeps of the data that it was trained on.
struct RowSchema {
  LoadedRows training;               // one row at most, its names and the code: new rows are read like it
  std::vector<FeatureRange> ranges;  // of the features in the training rows; empty: not known
};
RowSchema row_schema(const RowSplits& parts);

// How many features of each row are outside of their ranges; empty when these are not known.
std::vector<std::size_t> outside_of_ranges(const std::vector<FeatureRange>& ranges, const RowDataset<double>& rows);
// The rows that have some; none when ranges are not known.
std::optional<std::size_t> count_outside(const std::vector<FeatureRange>& ranges, const RowDataset<double>& rows);

// What is to be said of training data before anybody asks: text columns with a value for every few rows, and targets
// with as many classes. Nothing of a model without rows.
std::vector<std::string> table_warnings(const RowSplits& parts, const RowSource& source);

// The names of the columns to predict: those of the training file, else y1, y2, ...; `class` where a class has none.
std::vector<std::string> target_columns(const RowFamilyOptions& options, const LoadedRows& training);

// All of the description but the normalisation.
ModelDescription describe_rows(const RowFamilyOptions& options, const RowSchema& schema);

// Which rows train, validate and test, as the options say. Fails when nothing is left to train on, when all rows have
// one class, and when there is no such fold.
Result<RowSplits> split_rows(const LoadedRows& rows, const RowDataOptions& data, std::uint64_t seed);

// The features, targets and classes of a model file, without any row. Throws invalid_input when it has none.
RowSplits no_rows(const ModelDescription& description);
// The same with the code and the ranges. Throws invalid_input when they do not fit the options.
RowSplits restore_rows(const ModelDescription& description, const RowFamilyOptions& options);

}  // namespace gradloom
