// How a FamilySession trains: checks before the start, starts, stages. The end of family_session.h; nothing else
// includes it.
#pragma once

#include "gradloom/session/family_session.h"

namespace gradloom {

template <class F>
void FamilySession<F>::preflight() try {
  for (std::size_t stage = 0; stage < stages(); ++stage) {
    const M model = family_.model(stage);
    TrainState<T> blank;
    blank.parameters = Buffer<T>(model.parameters().flat_size());
    blank.buffers = Buffer<T>(model.buffers().flat_size());
    const TrainOptions train = family_.train_options(stage);
    make_trainer<F>(*exec_, device_, model, family_.train(), train, blank);
    const auto frozen = match_slices(model.parameters(), train.freeze, "freeze");
    if (train.epochs > 0 && !frozen.empty() && std::ranges::all_of(frozen, [](std::uint8_t f) { return f != 0; }))
      throw_invalid(fmt::format("train.freeze leaves no parameter to train{}",
                                stages() > 1 ? fmt::format(" in stage {}", stage + 1) : ""));
    check_part(model, family_.train(), "training");
    if (family_.validation()) check_part(model, *family_.validation(), "validation");
    if (family_.test()) check_part(model, *family_.test(), "test");
  }
  if (!device_ && options().train.compression.kind != kernels::compress::Compression::none)
    this->log(LogLevel::info, "optimizer.compress has no effect on the CPU, where no gradient is transferred");
} catch (const Exception& e) {
  const bool device_failed = e.code() == ErrorCode::unsuitable_device || e.code() == ErrorCode::device_memory ||
                             e.code() == ErrorCode::device_lost;
  if (!device_ || !device_failed || this->settings_.device_policy == DevicePolicy::required) throw;
  device_ = nullptr;
  make_exec();
  this->log(LogLevel::info, std::string("running on the CPU: ") + e.what());
  preflight();
}

template <class F>
TrainEnd FamilySession<F>::start() {
  const std::size_t restarts = options().train.restarts;
  state_ = family_.start(*exec_, 0);
  if (restarts > 1) {
    const M model = family_.model(0);
    TrainOptions options_of_start = family_.train_options(0);
    options_of_start.epochs = options().train.restart_epochs;
    options_of_start.comm = this->settings_.comm;
    const auto go_on = [&] { return this->stop_requested() ? Continue::stop : Continue::yes; };
    double best = std::numeric_limits<double>::infinity();
    TrainState<T> winner;
    for (std::size_t r = 0; r < restarts && !this->stop_requested(); ++r) {
      TrainState<T> state = family_.start(*exec_, r);
      double loss = std::numeric_limits<double>::infinity();
      const auto trainer = make_trainer<F>(*exec_, device_, model, family_.train(), options_of_start, state);
      const auto after_epoch = [&](const EpochReport& e) {
        loss = e.loss;
        if (family_.before_epoch(*exec_, 0, e.position.epoch, state)) trainer->reset_optimizer();
        return go_on();
      };
      try {
        trainer->run(
            {.after_step = [&](const TrainPosition&) { return go_on(); }, .validate = {}, .after_epoch = after_epoch});
      } catch (const Exception& e) {
        if (e.code() != ErrorCode::numeric) throw;
        continue;  // a start that diverged has lost
      }
      this->log(LogLevel::info, fmt::format("restart {} of {}: training loss {:.4g}", r + 1, restarts, loss));
      if (loss < best) {
        best = loss;
        winner = std::move(state);
      }
    }
    // The best of some starts is not the best of all: a resumed run begins anew, to end with the same bits.
    if (this->stop_requested()) return TrainEnd::stopped;
    if (winner.parameters.size() > 0) state_ = std::move(winner);
  }
  state_.position = {};
  begin_stage();
  return TrainEnd::finished;
}

template <class F>
void FamilySession<F>::start_from(const Session& trained) {
  const auto* other = dynamic_cast<const TypedSession<F>*>(&trained);
  if (!other)
    throw_invalid(fmt::format("a model of family \"{}\" in {} cannot start from one of family \"{}\" in {}",
                              options().family, name_of(kPrecisions, options().precision), trained.options().family,
                              name_of(kPrecisions, trained.options().precision)));
  const ModelArrays<T> arrays = other->result_arrays();
  state_ = {};
  state_.parameters = Buffer<T>(arrays.parameters.size());
  state_.buffers = Buffer<T>(arrays.buffers.size());
  std::copy(arrays.parameters.begin(), arrays.parameters.end(), state_.parameters.data());
  std::copy(arrays.buffers.begin(), arrays.buffers.end(), state_.buffers.data());
  family_.take_over(other->model(), state_);
  begin_stage();
  if (samples() > 0) return;
  state_.position.stage_done = state_.position.stage_closed = true;
  state_.position.run_epoch = trained.position().run_epoch;
}

template <class F>
void FamilySession<F>::start_over(EpochLoop& trainer, SessionListener& listener, std::size_t stage,
                                  const TrainPosition& at) {
  if (state_.position.stage_done) return;  // early stopping was first
  const std::size_t number = family_.start_over(*exec_, stage, at.epoch, state_);
  if (number == 0) return;
  trainer.reset_optimizer();
  if (state_.best) state_.best.emplace();  // parameters for other wires
  state_.position.epochs_without_progress = 0;
  listener.started_over(*this, at);
  this->log(LogLevel::info, fmt::format("start {}: the previous start did not reach the goal", number));
}

template <class F>
TrainEnd FamilySession<F>::train_stage(SessionListener& listener) {
  const std::size_t stage = state_.position.stage;
  const M model = family_.model(stage);
  TrainOptions train = family_.train_options(stage);
  train.comm = this->settings_.comm;
  const auto timestamps = this->settings_.profile ? vulkan::Timestamps::on : vulkan::Timestamps::off;
  const auto trainer = make_trainer<F>(*exec_, device_, model, family_.train(), train, state_, timestamps);
  trainer_ = trainer.get();
  struct EndOfStage {  // a listener may throw
    EpochLoop*& trainer;
    ~EndOfStage() { trainer = nullptr; }
  } const end_of_stage{trainer_};
  this->note_idle(trainer->idle_ranks());
  std::unique_ptr<AnyPredictor<T>> validator;
  std::vector<double> partials;
  const D& watched = family_.validation() ? *family_.validation() : family_.train();
  if (family_.validation()) {
    validator = make_predictor(model, watched, train.comm);
    partials.resize(loss_partials(watched.size()));
  }
  TrainHooks hooks;
  hooks.after_step = [&](const TrainPosition&) {
    if (this->stop_requested()) return Continue::stop;
    listener.after_step(*this);
    Comm* comm = this->settings_.comm;
    const bool due = listener.wants_save(*this);
    if (comm && comm->size() > 1 ? comm->agree_to_save(due) : due) {
      trainer->collect_state(EpochLoop::StateOf::rank_0);
      listener.save(*this);
    }
    return Continue::yes;
  };
  if (validator)
    hooks.validate = [&] {
      const auto& y = validator->run({state_.parameters, state_.buffers});
      return evaluate_loss<T>(*exec_, train.loss, watched.all(), y.view(), {}, partials);
    };
  hooks.after_epoch = [&](const EpochReport& e) {
    // Before anything is saved: a resumed run continues behind this point.
    if (e.position.epoch < train.epochs && family_.before_epoch(*exec_, stage, e.position.epoch, state_)) {
      trainer->reset_optimizer();
      if (state_.best) state_.best.emplace();  // parameters for the grids before
    }
    const ModelArrays<T> now{state_.parameters, state_.buffers};
    listener.after_epoch(*this, e, family_.epoch_metrics(*exec_, model, now, e.position.epoch));
    family_.repair(*exec_, model, stage, e.position.epoch, state_);
    // Told after the epoch is logged; a checkpoint from here on knows that the stage is done.
    if (family_.goal_reached(*exec_, model, {state_.parameters, state_.buffers}, e.position.epoch))
      state_.position.stage_done = true;
    else
      start_over(*trainer, listener, stage, e.position);
    return this->stop_requested() ? Continue::stop : Continue::yes;
  };
  const StageEnd end = trainer->run(hooks);
  trainer->sync();
  trainer->collect_state(EpochLoop::StateOf::all_ranks);
  if (end == StageEnd::stopped) listener.stopped(*this);
  for (const auto& [kernel, milliseconds] : trainer->kernel_times()) kernel_times_[kernel] += milliseconds;
  if (end == StageEnd::stopped) return TrainEnd::stopped;
  finish_stage();
  return TrainEnd::finished;
}

// What the stage hands on: the best parameters, where they were kept.
template <class F>
void FamilySession<F>::finish_stage() {
  if (keeps_best()) std::copy_n(state_.best->parameters.data(), state_.parameters.size(), state_.parameters.data());
  // A change before the epoch after the last one ends the stage; kept best parameters would no longer fit the buffers.
  const std::size_t stage = state_.position.stage;
  if (family_.refines(stage) && keeps_best() &&
      state_.best->run_epoch + state_.position.epoch < state_.position.run_epoch)
    this->log(LogLevel::info, fmt::format("{} did no better on validation data: the function of the stage before stays",
                                          stage_note(stage)));
  if (family_.before_epoch(*exec_, stage, epochs(stage), state_)) state_.best.reset();
  state_.position.stage_closed = true;
}

}  // namespace gradloom
