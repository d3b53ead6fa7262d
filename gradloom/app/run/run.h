// Runs: from a recipe to a folder with a trained model, its log, checkpoint and report; and on from there.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "gradloom/app/text.h"
#include "gradloom/base/result.h"
#include "gradloom/io/config.h"
#include "gradloom/session/check.h"
#include "gradloom/session/session.h"

namespace gradloom::app {

// Where a run stands, for people who watch it.
struct Progress {
  std::size_t stage = 0, stages = 1;
  std::uint64_t epoch = 0, epochs = 0;  // of the stage
  std::string note;                     // what the stage is about: "grid 10"
  double loss = 0.0;
  double validation = 0.0;  // NaN without validation data
  std::string extra;        // what the family measured last beside the losses; may be empty
  double samples_per_second = 0.0;
  double seconds = 0.0, seconds_left = 0.0;  // since the start; an estimate
};

using gradloom::CheckOptions;
using gradloom::DevicePolicy;

struct RunOptions : SessionOptions {
  std::filesystem::path data_root = ".";
  std::function<void(const Progress&)> progress;  // after each epoch; may be empty
};

// What a run ended with. summary: run, epochs, seconds, loss, validation, test (metrics by name), phases when profiled,
// finished_before when there was nothing left to train.
struct RunOutcome {
  nlohmann::json summary;
  std::vector<TextRow> rows;  // what only the family can tell, for people
  bool interrupted = false;   // stopped on request; `gradloom resume` goes on
};

// Makes `folder` (it must not exist, or be empty) and trains; an empty path: nothing is written. Fails with
// invalid_input, not_found, busy, io, numeric; what was saved before a failure stays.
Result<RunOutcome> train(const Config& recipe, const std::filesystem::path& folder, const RunOptions& options);

// Continues a run from its last checkpoint, with the bits of a run that was never interrupted. Refuses other training
// data than those of the run.
Result<RunOutcome> resume(const std::filesystem::path& folder, const RunOptions& options);

struct EvaluateOptions {
  // Where to write predictions as CSV: for `data`, otherwise for the test part (the training part where there is none);
  // empty: nowhere.
  std::filesystem::path predictions;
  std::filesystem::path data;  // a new file to measure and predict, with or without targets; empty: none
};

// result: metrics of a run's model on all parts of its data, and on a new file (`data`; null where that has no
// targets); rows: how many predictions were written; data_changed: the training data are no longer those of the run.
struct Evaluation {
  nlohmann::json result;
  std::vector<TextRow> rows;  // what only the family can tell, for people
};

// Does not write into the folder.
Result<Evaluation> evaluate(const std::filesystem::path& folder, const RunOptions& options,
                            const EvaluateOptions& what);

// Checks a recipe's model: gradients by central differences and dual numbers, equal bits on 1, 2, 3 and 8 threads, on
// every SIMD target and in the scalar reference.
Result<CheckReport> check(const Config& recipe, const RunOptions& options, const CheckOptions& what);

}  // namespace gradloom::app
