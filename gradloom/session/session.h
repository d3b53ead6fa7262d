// Session: a model, its data and its state, in memory, whatever the family and precision. It trains, measures, predicts
// and saves itself; it knows no recipes, run folders or terminals. A SessionListener is notified of events.
//
//   auto session = make_session<KanFamily>(options, source, {.exec = {.threads = 2}});
//   session->preflight();
//   if (train(*session, listener) == TrainEnd::finished) print(session->metrics());
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/log.h"
#include "gradloom/base/result.h"
#include "gradloom/circuit/json.h"
#include "gradloom/comm/comm.h"
#include "gradloom/data/rows.h"
#include "gradloom/exec/exec.h"
#include "gradloom/exec/vulkan/device.h"
#include "gradloom/io/safetensors.h"
#include "gradloom/session/model_file.h"
#include "gradloom/session/options/family.h"
#include "gradloom/train/epoch_loop.h"

namespace gradloom {

// What happens when the device cannot run the model.
enum class DevicePolicy { required, preferred };  // an error; the CPU instead, with a message in the log

struct SessionOptions {
  ExecOptions exec;
  // The arithmetic that was asked for, before that of `exec` and of what is opened; unset: a model file or a checkpoint
  // brings its own, which is taken where it is available.
  std::optional<Arithmetic> arithmetic;
  std::shared_ptr<vulkan::Device> device;  // null: the CPU
  DevicePolicy device_policy = DevicePolicy::required;
  bool profile = false;
  LogCallback log;                          // may be empty
  const std::atomic<bool>* stop = nullptr;  // set it to finish the step and return
  // Told when data begin to be read, and when that has ended; `stop` is not looked at in between. May be empty.
  std::function<void(bool reads)> reading;
  // Ranks that open the same session and train it together, each a share of every step (docs/cluster.md); null: this
  // process alone. Not owned.
  Comm* comm = nullptr;
};

// Data are read for as long as it lives.
class ReadingData {
 public:
  explicit ReadingData(const SessionOptions& options) : told_(options.reading) {
    if (told_) told_(true);
  }
  ~ReadingData() {
    if (told_) told_(false);
  }
  ReadingData(const ReadingData&) = delete;
  ReadingData& operator=(const ReadingData&) = delete;

 private:
  std::function<void(bool)> told_;
};

// The figures of one part of the data. NaN and infinity are possible.
struct PartMetrics {
  double loss = 0.0;
  std::map<std::string, double> values;  // by name, as the family has them
  std::size_t samples = 0;               // that they are about; 0: not known
  bool has_loss = true;                  // false: the family knows none of such data, and `loss` is NaN
};
nlohmann::json to_json(const PartMetrics& metrics);  // what is not finite becomes null

struct Metrics {
  PartMetrics train;
  std::optional<PartMetrics> validation, test;
};
nlohmann::json to_json(const Metrics& metrics);

// A sentence for each part with a loss or a metric that is not finite: which it is, on which data, why, and what to do.
// `data` is what they are called ("new data"), `precision` that of the model.
std::vector<std::string> metric_warnings(const PartMetrics& metrics, std::string_view data, Precision precision);
std::vector<std::string> metric_warnings(const Metrics& metrics, Precision precision);

// A column with the names of samples.
struct SampleNames {
  std::string column;              // "id"
  std::vector<std::string> names;  // (N)
};

// Outputs of the model, row by row.
struct PredictedRows {
  std::vector<SampleNames> samples;  // empty: they have no names
  std::vector<std::string> names;    // of the columns; empty: they have none
  std::size_t width = 0;
  std::vector<double> values;                // (N, width)
  Precision precision = Precision::float64;  // of the values
};

class Session;

// Is notified of events while a session trains. Every call is between two steps, when the session may be saved.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  virtual void after_step(Session&) {}
  // Whether a save is due; save() follows, at this step or one of the next.
  virtual bool wants_save(Session&) { return false; }
  virtual void save(Session&) {}
  // `metrics` is what the family adds to the log.
  virtual void after_epoch(Session&, const EpochReport&, const nlohmann::json& /*metrics*/) {}
  // A stage starts again from other parameters.
  virtual void started_over(Session&, const TrainPosition&) {}
  // The session was stopped in the middle of a stage.
  virtual void stopped(Session&) {}
  // The last epoch of a stage and the work after it are done; position().stage_closed is true.
  virtual void stage_finished(Session&) {}
  // The next stage is about to begin.
  virtual void stage_entered(Session&) {}
};

enum class TrainEnd { finished, stopped };

class Session {
 public:
  virtual ~Session() = default;

  virtual const FamilyOptions& options() const = 0;
  virtual std::size_t stages() const = 0;
  virtual std::uint64_t epochs(std::size_t stage) const = 0;
  virtual std::string stage_note(std::size_t stage) const = 0;
  virtual std::size_t samples() const = 0;          // of the training data
  virtual std::string learned_from() const = 0;     // "1000 training samples"
  virtual std::size_t parameter_count() const = 0;  // of the model of this stage
  virtual std::string device() const = 0;           // "cpu", or the name of a device
  virtual Arithmetic arithmetic() const = 0;
  virtual bool logs_accuracy() const = 0;
  virtual std::uint64_t data_fingerprint() = 0;  // of the training data
  // Of all data; 0 for a part that is not there.
  struct Fingerprints {
    std::uint64_t train = 0, validation = 0, test = 0;
  };
  virtual Fingerprints data_fingerprints() = 0;
  virtual const TrainPosition& position() const = 0;
  // All ranks that train together get the same answer.
  bool stop_requested() const {
    const bool here = settings_.stop && settings_.stop->load(std::memory_order_relaxed);
    return settings_.comm ? settings_.comm->agree_to_stop(here) : here;
  }
  // Why ranks cannot share the steps of every stage; empty: they can.
  virtual std::string why_not_shared() const = 0;
  bool shares_steps() const { return why_not_shared().empty(); }
  // Ranks for which a batch was too small, in any stage that was trained.
  const std::vector<unsigned>& idle_ranks() const { return idle_ranks_; }
  // This process trains alone from here on.
  void leave_ranks() { settings_.comm = nullptr; }

  // Throws what would make any stage fail before its first step: options, shapes, names of frozen parameters, a loss
  // that does not fit the data. A device that is preferred, not required, and cannot hold a stage gives way to the
  // CPU.
  virtual void preflight() = 0;
  // A fresh state: the best of the options' restarts, by training loss; after a stop in between, the first of them.
  virtual TrainEnd start() = 0;
  // The same from a trained model of this family and precision instead of a fresh one; without data, that model is the
  // result. Throws invalid_input when the networks differ in more than the family can map (of spline networks, the
  // grid).
  virtual void start_from(const Session& trained) = 0;
  // Trains this stage to its end or until a stop, and closes it.
  virtual TrainEnd train_stage(SessionListener& listener) = 0;
  // On to the next stage.
  virtual void enter_stage() = 0;

  // Written atomically. `log_lines` is kept in the file.
  virtual Result<void> save(const FilePlace& checkpoint, std::uint64_t log_lines) = 0;
  struct Restored {
    std::uint64_t log_lines = 0;
    bool data_changed = false;  // the training data are not those of the checkpoint
    bool old_contract = false;  // an earlier numerical contract: training cannot continue with equal bits
  };
  // The state of a checkpoint, which is read already and called `name` in messages. Fails as load_checkpoint does, and
  // when its position does not fit the options.
  virtual Result<Restored> restore(const TensorFile& file, const std::filesystem::path& name) = 0;

  // After restore(): training continues from the start of the epoch, with a reset optimizer.
  virtual void restart_optimizer() = 0;

  // The description of the model in a model file, beside options and tensors. Throws unsupported for families that have
  // none.
  virtual ModelDescription describe() const = 0;
  // A model file: the network alone, with what prediction needs. `options` are those of this stage, by their keys.
  // Throws as describe() does, and invalid_input on a name that is not UTF-8; fails with io.
  Result<void> save_model(const FilePlace& file, const nlohmann::json& options);
  // The bytes of that file. Throws as save_model() does.
  std::string model_bytes(const nlohmann::json& options);
  // The parameters and buffers of a model file that was made with the same options, which ends all training.
  virtual Result<void> restore_model(const ModelHead& head, const TensorFile& file,
                                     const std::filesystem::path& name) = 0;

  // All of the following uses the parameters of the result: the best ones where they are kept, else the last. Ranks
  // that work together call metrics(), predict() and measure() together.
  virtual Metrics metrics() = 0;
  // The share of the most frequent class among the training samples; none where they have no classes.
  virtual std::optional<double> largest_class() const = 0;
  virtual nlohmann::json study() = 0;
  // What the family adds to the summary of a finished run with these metrics, by key.
  virtual nlohmann::json conclude(const Metrics& metrics) = 0;
  virtual std::optional<circuit::AnyCircuit> hard_circuit() = 0;
  virtual std::vector<std::string> warnings() = 0;
  // The same of rows in the features of the source, which are called `name`: "new rows".
  virtual std::vector<std::string> warnings(const RowDataset<double>& rows, std::string_view name) = 0;
  // Samples of "validation" and "test" with a feature outside of its range in the training data; a part that is not
  // there, or whose family does not know, is left out.
  virtual std::map<std::string, std::size_t> rows_outside() const = 0;
  // The same of rows in the features of the source.
  virtual std::optional<std::size_t> rows_outside(const RowDataset<double>& rows) const = 0;
  // Of the test data, or of the training data where there is none.
  virtual PredictedRows predict() = 0;
  // Of rows in the features of the source; families that learn from other things throw unsupported.
  virtual PredictedRows predict(const RowDataset<double>& rows) = 0;
  virtual PartMetrics measure(const RowDataset<double>& rows) = 0;

  // Milliseconds by phase and, on a device, by kernel; empty unless profiled.
  virtual std::map<std::string, double> phases() const = 0;

 protected:
  explicit Session(SessionOptions settings) : settings_(std::move(settings)) {}
  void log(LogLevel level, const std::string& text) const {
    if (settings_.log) settings_.log(level, text);
  }

  // Gives what a model file has to `write`, and returns what that returns; see save_model().
  virtual Result<void> give_model(const nlohmann::json& options, TensorWriter write) = 0;

  // Stores idle ranks, and logs the new ones.
  void note_idle(const std::vector<unsigned>& ranks);

  SessionOptions settings_;

 private:
  std::vector<unsigned> idle_ranks_;
};

// Trains all stages from the position of the session on. Throws Exception, as EpochLoop::run does.
TrainEnd train(Session& session, SessionListener& listener);

}  // namespace gradloom
