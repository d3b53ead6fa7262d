#include "gradloom/app/predict/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "gradloom/app/text.h"
#include "gradloom/data/csv.h"
#include "gradloom/data/npy.h"
#include "gradloom/io/file.h"
#include "gradloom/kernels/elementary/elementary.h"

namespace gradloom::app {
namespace {

std::string csv_text(const PredictedTable& table) {
  std::string text;
  for (std::size_t c = 0; c < table.columns.size(); ++c) text += (c == 0 ? "" : ",") + csv_field(table.columns[c].name);
  text += '\n';
  for (std::size_t r = 0; r < table.rows; ++r) {
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      text += (c == 0 ? "" : ",") + csv_field(table.columns[c].cells[r]);
    text += '\n';
  }
  return text;
}

std::string npy_bytes(const PredictedTable& table) {
  static_assert(std::endian::native == std::endian::little);
  const bool single = table.precision == Precision::float32;
  std::string bytes = npy_header(single ? "<f4" : "<f8", table.shape);
  const auto append = [&](auto value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes.append(raw, sizeof value);
  };
  for (const double v : table.values) single ? append(static_cast<float>(v)) : append(v);
  return bytes;
}

}  // namespace

std::string number_text(double value, Precision precision) {
  return precision == Precision::float32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
}

void to_probabilities(std::span<const double> logits, std::span<double> probabilities) {
  if (logits.size() == 1) {
    probabilities[0] = kernels::split::sigmoid(-logits[0]);
    probabilities[1] = kernels::split::sigmoid(logits[0]);
    return;
  }
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (std::size_t c = 0; c < logits.size(); ++c) sum += probabilities[c] = kernels::split::exp(logits[c] - largest);
  for (double& p : probabilities) p /= sum;
}

std::uint32_t chosen_class(std::span<const double> logits) {
  if (logits.size() == 1) return logits[0] > 0;
  return static_cast<std::uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void add_numbers(PredictedTable& table, const PredictedRows& y, const std::vector<std::string>& targets) {
  for (std::size_t j = 0; j < targets.size(); ++j) {
    std::vector<std::string> cells;
    for (std::size_t r = 0; r < table.rows; ++r) cells.push_back(number_text(y.values[r * y.width + j], y.precision));
    table.add(targets[j] + "_predicted", std::move(cells));
  }
  table.shape = {table.rows, y.width};
  table.values = y.values;
  table.precision = y.precision;
}

void add_classes(PredictedTable& table, const PredictedRows& y, const std::string& target,
                 const std::vector<std::string>& classes) {
  table.shape = {table.rows, classes.size()};
  table.values.resize(table.rows * classes.size());
  table.precision = y.precision;
  std::vector<std::string> chosen;
  std::vector<std::vector<std::string>> cells(classes.size());
  for (std::size_t r = 0; r < table.rows; ++r) {
    const std::span<const double> logits(y.values.data() + r * y.width, y.width);
    const std::span<double> p(table.values.data() + r * classes.size(), classes.size());
    to_probabilities(logits, p);
    chosen.push_back(std::ranges::all_of(p, [](double v) { return std::isfinite(v); }) ? classes[chosen_class(logits)]
                                                                                       : std::string());
    for (std::size_t c = 0; c < classes.size(); ++c) cells[c].push_back(number_text(p[c], y.precision));
  }
  table.add(target + "_predicted", std::move(chosen));
  for (std::size_t c = 0; c < classes.size(); ++c) table.add(fmt::format("p({})", classes[c]), std::move(cells[c]));
}

void add_outside(PredictedTable& table, const std::vector<std::size_t>& outside) {
  std::vector<std::string> cells;
  for (const std::size_t count : outside) cells.push_back(fmt::format("{}", count));
  table.add("outside", std::move(cells));
  table.outside = static_cast<std::size_t>(
      std::count_if(outside.begin(), outside.end(), [](std::size_t count) { return count > 0; }));
}

std::string outside_warning(std::optional<std::size_t> outside, std::size_t rows) {
  if (outside.value_or(0) == 0) return "";
  return fmt::format("{} of {} {} features outside of their range in the training data", *outside, counted(rows, "row"),
                     rows == 1 ? "has" : "have");
}

std::string not_finite_warning(std::span<const double> values, std::size_t width) {
  const auto finite = [](double v) { return std::isfinite(v); };
  std::size_t rows = 0, count = 0, first = 0;
  for (std::size_t at = 0; width > 0 && at + width <= values.size(); at += width, ++rows)
    if (!std::ranges::all_of(values.subspan(at, width), finite) && count++ == 0) first = rows + 1;
  if (count == 0) return "";
  return fmt::format(
      "{} of {} have no finite prediction, the first of them is row {}: numbers became too large for the "
      "precision of the model",
      count, counted(rows, "row"), first);
}

Result<void> check_prediction_file(const std::filesystem::path& file) {
  if (file.extension() == ".csv" || file.extension() == ".npy") return {};
  return Error{ErrorCode::invalid_input,
               fmt::format("predictions are written as .csv or .npy, not to {}", file.string())};
}

Result<void> write_predictions(const std::filesystem::path& file, const PredictedTable& table) {
  if (auto r = check_prediction_file(file); !r) return r;
  if (file.extension() == ".csv") return write_file_atomic(file, csv_text(table));
  if (table.shape.empty())
    return Error{ErrorCode::unsupported,
                 fmt::format("the predictions of this model are not numbers: write them to a .csv file, not to {}",
                             file.string())};
  return write_file_atomic(file, npy_bytes(table));
}

}  // namespace gradloom::app
