// Runs: from a recipe to a folder with a trained model, its log, checkpoint and report; and on from there.
#pragma once

#include <filesystem>
#include <functional>
#include <map>

#include "gradloom/app/predict/new_data.h"
#include "gradloom/app/text.h"
#include "gradloom/base/result.h"
#include "gradloom/io/config.h"
#include "gradloom/io/fields.h"
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
  bool has_goal = false;                     // the run ends as soon as it is reached: the time left is the most
};

using gradloom::CheckOptions;
using gradloom::DevicePolicy;
using gradloom::to_json;

struct RunOptions : SessionOptions {
  std::filesystem::path data_root = ".";
  bool restart_optimizer = false;  // resume() of a run of an earlier numerical contract: with fresh optimizer memory
  std::function<void(const Progress&)> progress;  // after each epoch; may be empty
};

// Accuracies by epoch of the run; of one part only, or none, where the log has no others.
struct AccuracyCurve {
  std::vector<std::uint64_t> epoch;
  std::vector<double> validation, test;
  GRADLOOM_FIELDS(epoch, validation, test)
};

// The epoch that did best on validation data.
struct ChosenEpoch {
  std::uint64_t epoch = 0;
  double validation = 0.0, test = 0.0;
  GRADLOOM_FIELDS(epoch, validation, test)
};

// What a run that was not interrupted ended with.
struct RunResult {
  Metrics metrics;
  std::vector<nlohmann::json> stages;  // as they were logged: metrics and note
  std::size_t parameters = 0;
  std::string device;
  std::string arithmetic;  // fused or split
  std::vector<std::string> warnings;
  std::map<std::string, std::size_t> rows_outside;  // of the training range, by part
  std::optional<AccuracyCurve> curve;               // of families that log accuracies
  std::optional<ChosenEpoch> chosen;
  nlohmann::json found;                                 // by the family, by key
  std::vector<TextRow> rows;                            // the same for people
  std::optional<std::string> report;                    // file
  std::optional<bool> finished_before;                  // true: there was nothing left to train
  std::optional<nlohmann::json> settled;                // how settings were chosen that the recipe left to the data
  std::optional<std::map<std::string, double>> phases;  // milliseconds, when profiled
  GRADLOOM_FIELDS(metrics.train.loss, stages, parameters, device, arithmetic, warnings, rows_outside, curve, chosen,
                  report, finished_before, settled, phases)
};

struct RunSummary {
  std::optional<std::string> run;  // folder
  std::uint64_t epochs = 0;
  double seconds = 0.0;
  std::optional<unsigned> ranks;                    // that trained together; absent: one process, as are the next two
  std::optional<std::vector<unsigned>> idle_ranks;  // for which a batch was too small
  std::optional<std::uint64_t> bytes_sent;          // by this rank, to others
  std::optional<bool> interrupted;                  // true: stopped on request; `gradloom resume` continues
  std::optional<std::string> resume;                // the command for that, set by the caller that prints the summary
  std::optional<RunResult> result;
  GRADLOOM_FIELDS(run, epochs, seconds, ranks, idle_ranks, bytes_sent, interrupted, resume)
};
// One object: the fields of both, the metrics, and what the family found.
nlohmann::json to_json(const RunSummary& summary);

// With options.comm, all ranks call train() or resume() alike; rank 0 alone writes, and has a result. Fails with io
// when ranks have different recipes, data or versions.

// Makes `folder` (it must not exist, or be empty) and trains; an empty path: nothing is written. Fails with
// invalid_input, not_found, busy, io, numeric; what was saved before a failure stays.
Result<RunSummary> train(const Config& recipe, const std::filesystem::path& folder, const RunOptions& options);

// Continues a run from its last checkpoint, with the bits of a run that was never interrupted. Refuses other training
// data than those of the run, another arithmetic, and runs of an earlier numerical contract, whose bits it does not
// have (see restart_optimizer).
Result<RunSummary> resume(const std::filesystem::path& folder, const RunOptions& options);

struct EvaluateOptions {
  // Where to write predictions as CSV: for `data`, otherwise for the test part (the training part where there is none);
  // empty: nowhere.
  std::filesystem::path predictions;
  NewData data;  // to measure and predict, with or without targets; no file: none
};

struct Evaluation {
  std::string run;  // folder
  std::uint64_t epochs = 0;
  bool data_changed = false;                        // the training data are no longer those of the run
  Metrics metrics;                                  // on all parts of its data
  std::optional<nlohmann::json> data;               // metrics on the new file; null where that has no targets
  std::optional<std::size_t> outside;               // its rows with a feature outside of the training range
  std::map<std::string, std::size_t> rows_outside;  // of the training range, by part
  std::vector<std::string> warnings;
  std::optional<nlohmann::json> study;  // what the family found
  std::vector<TextRow> found;           // the same for people
  std::optional<std::size_t> rows;      // predictions that were written, and where
  std::optional<std::string> predictions;
  GRADLOOM_FIELDS(run, epochs, data_changed, data, outside, rows_outside, warnings, study, rows, predictions)
};
nlohmann::json to_json(const Evaluation& evaluation);

// Does not write into the folder.
Result<Evaluation> evaluate(const std::filesystem::path& folder, const RunOptions& options,
                            const EvaluateOptions& what);

// Checks a recipe's model: gradients by central differences and dual numbers, equal bits on 1, 2, 3 and 8 threads, on
// every SIMD target and in the scalar reference.
Result<CheckReport> check(const Config& asked, const RunOptions& options, const CheckOptions& what);

}  // namespace gradloom::app
