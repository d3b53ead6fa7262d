// Predictions for new data by a model file, or by the model of a run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/app/predict/new_data.h"
#include "gradloom/app/predict/table.h"
#include "gradloom/app/run/run.h"
#include "gradloom/base/result.h"
#include "gradloom/io/fields.h"
#include "gradloom/io/file_place.h"

namespace gradloom::app {

struct PredictOptions : NewData {
  std::filesystem::path out;  // .csv or .npy; empty: nowhere
};

struct PredictReport {
  std::string model;  // the file, or the folder of the run
  std::string family;
  std::uint64_t epochs = 0;
  bool finished = true;                // false: its training was stopped
  std::size_t rows = 0;                // predicted
  std::optional<std::size_t> outside;  // rows with a feature outside of its training range
  nlohmann::json data;                 // metrics, where the data have what is to be predicted; else null
  std::vector<std::string> warnings;
  std::optional<std::string> out;
  GRADLOOM_FIELDS(model, family, epochs, finished, rows, outside, data, warnings, out)
};

// The session of a model file, which is called `file` in messages; `head`, if it is not null, gets its metadata. Its
// arithmetic is that of the settings, else that of the file where it is available. Fails with not_found, io,
// invalid_input (no model file, or a damaged one), unsupported (another version).
Result<std::unique_ptr<Session>> open_model(const FilePlace& file, const SessionOptions& settings,
                                            ModelHead* head = nullptr);

// The same of bytes that were read already.
Result<std::unique_ptr<Session>> open_model(const TensorFile& tensors, const std::filesystem::path& name,
                                            const SessionOptions& settings, ModelHead* head = nullptr);

// `model` is a model file, a file of formulas (formula/stored.h) or the folder of a run: of that, its model file, or
// the checkpoint where there is none yet, which needs the training data. Needs nothing else that the model was trained
// with. Fails as open_model does, and with invalid_input when the data do not fit the model. With options.comm all
// ranks that see the files predict a share; rank 0 writes, and its report is that of all. A run without a model file is
// left to rank 0.
Result<PredictReport> predict(const std::filesystem::path& model, const RunOptions& options,
                              const PredictOptions& what);

}  // namespace gradloom::app
