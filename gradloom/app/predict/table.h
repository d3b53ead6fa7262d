// PredictedTable: what a model says of new data, as a table and as numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/session/session.h"

namespace gradloom::app {

struct PredictedTable {
  std::size_t rows = 0;
  struct Column {
    std::string name;
    std::vector<std::string> cells;  // (rows)
  };
  std::vector<Column> columns;  // in the order of the file

  // What was predicted, as an array; no shape: there are no numbers.
  std::vector<std::size_t> shape;
  std::vector<double> values;
  Precision precision = Precision::float64;

  std::vector<std::string> warnings;   // what is to be said of them
  std::optional<PartMetrics> metrics;  // where the data have what was to be predicted
  std::optional<std::size_t> outside;  // rows with a feature outside of its training range; not where none is known

  void add(std::string name, std::vector<std::string> cells) { columns.push_back({std::move(name), std::move(cells)}); }
};

// A number with as many digits as reading it back needs.
std::string number_text(double value, Precision precision);

// One row of outputs as probabilities: of two classes when there is one logit.
void to_probabilities(std::span<const double> logits, std::span<double> probabilities);
// The class that the outputs stand for; the first of equals. By the logits, as accuracy is: different ones may have
// equal probabilities.
std::uint32_t chosen_class(std::span<const double> logits);

// Adds the columns TARGET_predicted of numbers, one for each name, and the array.
void add_numbers(PredictedTable& table, const PredictedRows& y, const std::vector<std::string>& targets);
// Adds the column TARGET_predicted of classes, p(CLASS) for each class, and the array of probabilities. Outputs that
// are no finite numbers choose no class.
void add_classes(PredictedTable& table, const PredictedRows& y, const std::string& target,
                 const std::vector<std::string>& classes);
// Adds the column `outside`, how many features of each row are outside of their ranges. Not where no range is known.
void add_outside(PredictedTable& table, const std::vector<std::size_t>& outside);

// What is to be said of rows with features outside of their ranges; empty: there are none, or no range is known.
std::string outside_warning(std::optional<std::size_t> outside, std::size_t rows);

// What is to be said of predictions that are no finite numbers; empty: all are.
std::string not_finite_warning(std::span<const double> values, std::size_t width);

// Whether `file` names a form that predictions can be written in: .csv or .npy.
Result<void> check_prediction_file(const std::filesystem::path& file);
// Written atomically. Fails with unsupported when a .npy file is requested and there are no numbers, with io.
Result<void> write_predictions(const std::filesystem::path& file, const PredictedTable& table);

}  // namespace gradloom::app
