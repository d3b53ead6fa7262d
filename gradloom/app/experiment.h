// Experiment: the stages of one run, whatever the family; log, checkpoints, metrics and report on the way.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <numeric>

#include "gradloom/app/checkpoint_position.h"
#include "gradloom/app/device_training.h"
#include "gradloom/app/report.h"
#include "gradloom/app/run.h"
#include "gradloom/app/run_report.h"
#include "gradloom/app/settings.h"
#include "gradloom/data/csv.h"
#include "gradloom/data/fingerprint.h"
#include "gradloom/exec/profile.h"
#include "gradloom/io/file.h"
#include "gradloom/io/run_folder.h"
#include "gradloom/io/run_log.h"
#include "gradloom/train/checkpoint.h"
#include "gradloom/train/metrics.h"
#include "gradloom/train/predict.h"
#include "gradloom/train/trainer.h"

namespace gradloom::app {

// NaN and infinity have no place in JSON.
inline nlohmann::json finite_or_null(double v) {
  return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(nullptr);
}

// What to do when a run's data have changed since it was saved: going on would mix two runs; a look at it is harmless.
enum class OtherData { refuse, tell };

// F is a family such as KanFamily<T>. An Experiment lives for one call of train(), resume() or evaluate().
template <class F>
class Experiment {
 public:
  using T = typename F::Scalar;
  using M = typename F::Model;
  using D = typename F::Data;

  Experiment(const Config& recipe, F family, const RunOptions& options)
      : recipe_(recipe), family_(std::move(family)), options_(options), exec_(options.exec), profile_(exec_.threads()) {
    if (options.profile) exec_.set_profile(&profile_);
    choose_device();
  }

  // Throws what would make any stage fail before its first step: options, shapes, names of frozen parameters, a loss
  // that the data are not made for. A device
  // that is preferred, not required, and cannot hold a stage gives way to the CPU.
  void prove();
  // A fresh state: the best of the recipe's restarts, by training loss. After a stop in between there is none; run()
  // then says so.
  void start();
  // The state of a checkpoint. Fails as load_checkpoint does, when it stands where the recipe does not lead, and,
  // unless `other` tolerates it, when the training data are not those it was trained on.
  Result<void> restore(const RunFolder& folder, OtherData other);
  // Trains to the end, or until options.stop; writes log, checkpoints and report into the folder.
  Result<RunOutcome> run(const RunFolder& folder);
  // Metrics on every part of the data, with the parameters the run would hand out.
  nlohmann::json metrics();
  // What the family alone can tell of its model (a hard circuit on larger grids, under damage); null when nothing.
  Result<nlohmann::json> study();
  // Writes predictions for the test data, or for the training data where there is none; tells `result` their `rows`.
  Result<void> write_predictions(const std::filesystem::path& path, nlohmann::json& result);
  // Reads a further file. Fails with unsupported for a family that takes none.
  Result<FurtherRows<T>> read_further(const std::filesystem::path& file) const;
  // Tells `result` the metrics on further rows (`data`; null when they have no targets), and writes predictions for
  // them unless their path is empty.
  Result<void> measure_further(const FurtherRows<T>& further, const std::filesystem::path& predictions,
                               nlohmann::json& result);

  // Whether restore() found that the data have changed.
  bool data_changed() const { return data_changed_; }
  const Exec& exec() const { return exec_; }
  TrainState<T>& state() { return state_; }
  F& family() { return family_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Sets device_. Throws unsupported when the family has no version for a device that is required.
  void choose_device();
  StageEnd run_stage(std::size_t stage, const RunFolder& folder);
  // Where a family gives up what it has learned to begin anew.
  void start_over(StageTrainer<F>& trainer, std::size_t stage, const TrainPosition& at);
  void begin_stage(TrainState<T>& state) const;
  void prove_loss(const M& model, const D& data, const char* part) const;
  void finish_stage();
  void save(const M& model, const RunFolder& folder);
  std::uint64_t data_fingerprint();
  void append_log(const nlohmann::json& line);
  RunOutcome interrupted(const RunFolder& folder) const;
  Result<nlohmann::json> stages_of_log(const RunFolder& folder) const;
  std::span<const T> result_parameters() const;  // the best ones where they are kept, else the last
  Report report(const nlohmann::json& summary, const RunFolder& folder);
  // `numbers` are those of the rows in their file; empty: not written.
  Result<void> write_predictions(const std::filesystem::path& path, const D& data,
                                 std::span<const std::uint32_t> numbers, nlohmann::json& result);
  nlohmann::json part_metrics(const M& model, const D& data, std::span<const T> parameters);
  void tell_progress(const EpochReport& epoch, std::size_t stage);
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  bool stop_requested() const { return options_.stop && options_.stop->load(std::memory_order_relaxed); }

  TrainOptions train_options_of(std::size_t stage) const { return train_options(stage_of(family_.options(), stage)); }
  std::size_t stages() const { return stage_count(family_.options()); }
  std::vector<std::uint64_t> epochs_by_stage() const;

  const Config& recipe_;  // as the report shows it
  F family_;
  const RunOptions& options_;
  Exec exec_;
  Profile profile_;
  vulkan::Device* device_ = nullptr;            // null: the CPU
  std::function<void()> sync_;                  // brings state_ up to date while a device trains
  std::map<std::string, double> kernel_times_;  // on a device, in milliseconds
  TrainState<T> state_;
  std::optional<RunLog> log_;
  std::uint64_t log_lines_ = 0;
  std::optional<std::uint64_t> data_;  // fingerprint of the training data, once it is needed
  nlohmann::json latest_metrics_;      // of family_.epoch_metrics()
  bool stopped_at_start_ = false, data_changed_ = false, log_is_short_ = false;
  Clock::time_point begin_ = Clock::now(), last_save_ = begin_;
  std::uint64_t epochs_here_ = 0;  // since this process began, for the estimate of the time left
};

}  // namespace gradloom::app

#include "gradloom/app/experiment.inc"
#include "gradloom/app/experiment_restore.inc"
