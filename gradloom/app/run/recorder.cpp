#include "gradloom/app/run/recorder.h"

#include <algorithm>

#include "gradloom/exec/arithmetic_names.h"

namespace gradloom::app {

using nlohmann::json;

Result<void> RunRecorder::open() {
  if (!folder_) return {};
  auto kept = keep_first_lines(folder_->log(), log_lines_);
  if (!kept) return kept.error();
  auto log = RunLog::open(folder_->log());
  if (!log) return log.error();
  log_.emplace(std::move(*log));
  return {};
}

// The first line of a log: which bits it is about.
void RunRecorder::begin(const Session& session) {
  if (log_lines_ > 0) return;
  append({{"event", "begin"},
          {"arithmetic", kNumericalContract},
          {"multiply_add", name_of(kArithmetics, session.arithmetic())}});
}

void RunRecorder::append(json line) {
  if (log_)
    log_->append(line).or_throw();
  else
    memory_.push_back(std::move(line));
  ++log_lines_;
}

void RunRecorder::save(Session& session) {
  if (!folder_) return;
  folder_->check_own().or_throw();
  // A checkpoint counts lines of the log: they must be there whenever it is.
  if (log_) log_->sync().or_throw();
  session.save(folder_->last_checkpoint(), log_lines_).or_throw();
  last_save_ = Clock::now();
}

bool RunRecorder::wants_save(Session& session) {
  const double since = std::chrono::duration<double>(Clock::now() - last_save_).count();
  return since > session.options().train.checkpoint_seconds;
}

void RunRecorder::after_epoch(Session& session, const EpochReport& e, const json& metrics) {
  json line{{"event", "epoch"},
            {"stage", e.position.stage},
            {"epoch", e.position.epoch},
            {"run_epoch", e.position.run_epoch},
            {"loss", finite_or_null(e.loss)},
            {"validation", finite_or_null(e.validation)},
            {"lr", e.learning_rate},
            {"best", e.improved}};
  line.update(metrics);
  line.erase("shown");
  latest_metrics_.update(metrics);
  append(std::move(line));
  tell_progress(session, e);
}

void RunRecorder::started_over(Session&, const TrainPosition& at) {
  append({{"event", "start_over"}, {"stage", at.stage}, {"epoch", at.epoch}, {"run_epoch", at.run_epoch}});
}

void RunRecorder::stage_finished(Session& session) {
  const TrainPosition& at = session.position();
  append({{"event", "stage"},
          {"stage", at.stage},
          {"note", session.stage_note(at.stage)},
          {"run_epoch", at.run_epoch},
          {"metrics", to_json(session.metrics())}});
  save(session);
}

void RunRecorder::tell_progress(const Session& session, const EpochReport& e) {
  ++epochs_here_;
  if (!options_.progress) return;
  const std::size_t stage = e.position.stage;
  std::uint64_t done = 0, total = 0;
  for (std::size_t s = 0; s < session.stages(); ++s) {
    total += session.epochs(s);
    if (s < stage) done += session.epochs(s);
  }
  done += e.position.epoch;
  Progress p;
  p.stage = stage;
  p.stages = session.stages();
  p.epoch = e.position.epoch;
  p.epochs = session.epochs(stage);
  p.note = session.stage_note(stage);
  p.loss = e.loss;
  p.validation = e.validation;
  if (family_.progress) p.extra = family_.progress(latest_metrics_);
  p.seconds = seconds();
  p.samples_per_second = static_cast<double>(epochs_here_ * session.samples()) / std::max(p.seconds, 1e-9);
  p.has_goal = family_.has_goal && family_.has_goal(session.options());
  p.seconds_left = p.seconds / static_cast<double>(epochs_here_) * static_cast<double>(total - std::min(done, total));
  options_.progress(p);
}

Result<std::vector<json>> RunRecorder::lines() const {
  if (!folder_) return memory_;
  auto log = read_run_log(folder_->log());
  if (!log) return log.error();
  return std::move(log->lines);
}

}  // namespace gradloom::app
