// Predictions for new rows, for all families that learn from rows.
#pragma once

#include <fmt/format.h>

#include "gradloom/app/predict/predict.h"
#include "gradloom/app/settings.h"
#include "gradloom/session/rows.h"
#include "gradloom/session/typed_session.h"

namespace gradloom::app {

// New rows, and what a table of predictions says of them beside the predictions.
struct AskedRows {
  NewRows<double> rows;
  std::vector<std::string> targets;  // columns to predict
  PredictedTable table;              // with numbers and truths
  std::vector<std::size_t> outside;  // features of each row outside of their training range; empty: not known
};
Result<AskedRows> ask_rows(const RowFamilyOptions& options, const RowSchema& schema, const std::filesystem::path& file,
                           double largest_input);

// The predictions, which follow what ask_rows() has put into the table.
PredictedTable finish_rows(AskedRows asked, const PredictedRows& y, std::optional<PartMetrics> metrics);

template <class F>
Result<PredictedTable> predict_rows(const TypedSession<F>& session, const NewData& data) {
  const F& family = session.family();
  auto asked = ask_rows(family.options(), family.schema(), data.file, F::kLargestInput);
  if (!asked) return asked.error();
  const auto own = *family.new_rows(asked->rows.rows);
  std::optional<PartMetrics> metrics;
  if (asked->rows.has_targets) metrics = session.measure_on(own);
  return finish_rows(std::move(*asked), session.predict_on(own), std::move(metrics));
}

}  // namespace gradloom::app
