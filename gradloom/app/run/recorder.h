// RunRecorder: listens to a session and keeps what a run leaves behind: log, checkpoint, progress.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "gradloom/app/families/families.h"
#include "gradloom/app/run/run.h"
#include "gradloom/io/run_folder.h"
#include "gradloom/io/run_log.h"

namespace gradloom::app {

// Throws Exception{io} when the folder cannot be written, or is no longer its own.
class RunRecorder final : public SessionListener {
 public:
  // `folder` may be null: the log stays in memory, and nothing is saved. Options and folder outlive the recorder.
  RunRecorder(const RunOptions& options, const AppFamily& family, const RunFolder* folder)
      : options_(options), family_(family), folder_(folder) {}

  // Where a restored run stands: as many lines of the log belong to its state; `short_log`: some of them are lost.
  void resume_at(std::uint64_t log_lines, bool short_log) {
    log_lines_ = log_lines;
    log_is_short_ = short_log;
  }
  // Cuts the log to the lines that belong to the session's state, and opens it.
  Result<void> open();
  // Behind open(): the first line of a new log.
  void begin(const Session& session);

  bool wants_save(Session& session) override;
  void save(Session& session) override;
  void after_epoch(Session& session, const EpochReport& epoch, const nlohmann::json& metrics) override;
  void started_over(Session& session, const TrainPosition& at) override;
  void stopped(Session& session) override { save(session); }
  void stage_finished(Session& session) override;
  void stage_entered(Session& session) override { save(session); }

  // All lines of the run, also of those before a resume.
  Result<std::vector<nlohmann::json>> lines() const;
  const Comm* comm() const { return options_.comm; }
  bool log_is_short() const { return log_is_short_; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;

  void append(nlohmann::json line);
  void tell_progress(const Session& session, const EpochReport& epoch);

  const RunOptions& options_;
  const AppFamily& family_;
  const RunFolder* folder_;
  std::optional<RunLog> log_;
  std::vector<nlohmann::json> memory_;  // the lines of a run without a folder
  std::uint64_t log_lines_ = 0;
  bool log_is_short_ = false;
  nlohmann::json latest_metrics_;  // of the family, from any epoch
  Clock::time_point begin_ = Clock::now(), last_save_ = begin_;
  std::uint64_t epochs_here_ = 0;  // since this process began, for the estimate of the time left
};

}  // namespace gradloom::app
