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

// What a model says about N rows. Regression: columns are targets. Classification: columns are classes, values their
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
  SessionOptions session;  // threads, device, log; a stop that is set ends training, and the model is what it is then
};

// A trained network. Movable; one thread at a time may use it.
class FittedModel {
 public:
  // In training or loading; others call fit() or load().
  explicit FittedModel(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  Prediction predict(const MatrixView& x) const;
  // The same of a table, given as text with a header: columns by name, categories and missing values as in training.
  Prediction predict_table(std::string csv) const;
  // A spline network with so many grid intervals and the same functions; like a model from a file, it has no data.
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

  // The session behind it, for all else: its options, its circuit, the outputs before the softmax.
  Session& session() const { return *session_; }

 private:
  std::unique_ptr<Session> session_;
};

// Trains on rows: x (N, features), y (N, targets) or N classes. options.task follows from y, and options.data says
// which part of the rows is held out: by default a tenth for validation and a fifth to test. Equal data, options and
// seed give equal bits, here and in `gradloom train`. Throws invalid_input before any work when something does not fit;
// numeric when training leaves the finite numbers.
FittedModel fit(const MatrixView& x, const TargetView& y, const KanOptions& options, const FitOptions& more = {});
// A classifier of logic gates; y holds classes.
FittedModel fit(const MatrixView& x, const TargetView& y, const GatesOptions& options, const FitOptions& more = {});

// A model that save() wrote, or `gradloom train`; those of families that learn from other things than rows cannot
// predict here. Throws not_found, io, invalid_input (no model file, or a damaged one), unsupported
// (another version).
FittedModel load(const std::filesystem::path& file, const SessionOptions& session = {});

}  // namespace gradloom
