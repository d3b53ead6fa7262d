// gradloom for C++ programs: train a network on data in memory, predict, save, load (docs/cpp.md).
//
//   gradloom::KanOptions options;
//   options.model.hidden = {5};
//   const auto model = gradloom::fit({x, 2}, y, options);       // x: row by row, 2 features each
//   const gradloom::Prediction p = model.predict({x_new, 2});
//   model.save("model.safetensors");
//   const auto again = gradloom::load("model.safetensors");     // predicts with equal bits
//
// Every mistake throws gradloom::Exception, with a code and a message that names the argument and its value.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gradloom/data/memory_rows.h"
#include "gradloom/session/families/gates/options.h"
#include "gradloom/session/families/kan/options.h"
#include "gradloom/session/session.h"

namespace gradloom {

// Predictions for N rows. Regression: columns are targets. Classification: columns are classes, values their
// probabilities.
struct Prediction {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;        // (rows, columns)
  std::vector<std::string> names;    // of the columns
  std::vector<std::uint32_t> label;  // classification: the most probable class of each row (the first of equals), as an
                                     // index of `names`; else empty

  double operator()(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

class FittedModel;

// Beside the options of the network, which are those of recipes (docs/recipes.md).
struct FitOptions {
  std::vector<std::string> features;  // names; empty: x1, x2, ...
  std::vector<std::string> targets;   // names, for regression; empty: y1, y2, ...
  std::span<const double> weights;    // of the rows; empty: all 1
  std::function<void(const EpochReport&)> after_epoch;
  const FittedModel* from = nullptr;  // a trained spline network to start from, of the same shape or another grid
  SessionOptions session;  // threads, device, log; `stop` ends training, and the model has the parameters of that step
};

// A trained network. Movable; one thread at a time may use it.
class FittedModel {
 public:
  // For fit() and load(); call those instead.
  explicit FittedModel(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  Prediction predict(const MatrixView& x) const;
  // The same of a table, given as text with a header: columns by name, categories as in training, missing
  // values too, but for a model that was trained without rows that have some they are an error.
  Prediction predict_table(std::string csv) const;
  // A spline network with `grid` grid intervals and the same functions; like a model from a file, it has no data.
  FittedModel refine(std::size_t grid, const SessionOptions& settings = {}) const;
  // Loss, and rmse, mae, r2 or accuracy, of rows whose targets are known.
  PartMetrics measure(const MatrixView& x, const TargetView& y) const;
  // The same of the training, validation and test part of the data that fit() was given. Throws unsupported for a model
  // from a file, which has no data.
  Metrics metrics() const;

  std::vector<std::string> features() const;
  std::vector<std::string> targets() const;  // empty for classification
  std::vector<std::string> classes() const;  // empty for regression

  // One file with all that load() needs (docs/format.md), written atomically.
  void save(const std::filesystem::path& file) const;
  // The bytes of that file.
  std::string save_bytes() const;

  // The session of the model, for everything else: its options, its circuit, the outputs before the softmax.
  Session& session() const { return *session_; }

 private:
  std::unique_ptr<Session> session_;
};

// Trains on rows: x (N, features), y (N, targets) or N classes. options.task follows from y, and options.data says
// which part of the rows is held out: by default a tenth for validation and a fifth to test. Equal data, options and
// seed give equal bits, here and in `gradloom train`. Throws invalid_input before any work when something does not fit;
// numeric when a loss or gradient is not finite.
FittedModel fit(const MatrixView& x, const TargetView& y, const KanOptions& options, const FitOptions& more = {});
// A classifier of logic gates; y holds classes.
FittedModel fit(const MatrixView& x, const TargetView& y, const GatesOptions& options, const FitOptions& more = {});

// A model file of save() or of `gradloom train`; models of families that do not learn from rows cannot
// predict here. Throws not_found, io, invalid_input (not a model file, or a damaged one), unsupported
// (another version).
FittedModel load(const std::filesystem::path& file, const SessionOptions& session = {});

}  // namespace gradloom
