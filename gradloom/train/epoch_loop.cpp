#include "gradloom/train/epoch_loop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "gradloom/base/error.h"
#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/kernels/contract.h"

namespace gradloom {
namespace {

std::size_t batch_size(const TrainOptions& o, std::size_t samples) {
  return o.optimizer.kind == OptimizerKind::lbfgs || o.batch == 0 ? samples : o.batch;
}

std::size_t piece_size(const TrainOptions& o, std::size_t batch) {
  return o.parallel_examples == 0 ? batch : std::min(batch, o.parallel_examples);
}

void check_options(const TrainOptions& o, std::size_t samples, std::size_t batch, std::size_t piece) {
  validate(o.optimizer);
  if (samples == 0) throw_invalid("there is no data to train on");
  if (batch > samples)
    throw_invalid(fmt::format(
        "the batch of {} samples is larger than the training data ({} samples); set train.batch = 0 for all of them",
        batch, samples));
  if (o.accumulate == 0) throw_invalid("train.accumulate is 0; it must be at least 1");
  if (o.accumulate > 1 && o.optimizer.kind == OptimizerKind::lbfgs)
    throw_invalid("L-BFGS works on the full batch; accumulate must be 1");
  if (piece < batch && o.optimizer.kind == OptimizerKind::lbfgs)
    throw_invalid("L-BFGS works on the full batch; parallel_examples must be 0");
}

}  // namespace

bool optimizes_on_host(const TrainOptions& options) {
  if (options.place == OptimizerPlace::automatic) return options.optimizer.kind == OptimizerKind::lbfgs;
  return options.place == OptimizerPlace::host;
}

namespace {

// Batches, or pieces of batches, of an optimizer step.
std::size_t pieces_of_step(const TrainOptions& o, std::size_t samples) {
  const std::size_t batch = o.batch == 0 ? samples : o.batch;
  return o.accumulate * divide_up(batch, piece_size(o, batch));
}

}  // namespace

bool is_accumulating(const TrainOptions& o, std::size_t samples, const TrainPosition& position) {
  return position.batch % pieces_of_step(o, samples) != 0;
}

std::vector<std::uint8_t> match_slices(const Slices& slices, const std::vector<std::string>& names,
                                       const char* option) {
  std::vector<std::uint8_t> matches(slices.size(), 0);
  for (const std::string& name : names) {
    const bool prefix = !name.empty() && name.back() == '*';
    const std::string_view stem(name.data(), name.size() - (prefix ? 1 : 0));
    bool matched = false;
    for (std::size_t s = 0; s < slices.size(); ++s) {
      if (prefix ? !slices[s].name.starts_with(stem) : slices[s].name != stem) continue;
      matches[s] = 1;
      matched = true;
    }
    if (matched) continue;
    std::vector<std::string> all;
    for (const Slice& slice : slices) all.push_back(slice.name);
    throw_invalid(fmt::format("{} names '{}', which is not a parameter of the model; the parameters are {}", option,
                              name, fmt::join(all, ", ")));
  }
  return matches;
}

EpochLoop::EpochLoop(TrainOptions options, std::size_t samples, TrainPosition& position)
    : options_(std::move(options)),
      samples_(samples),
      position_(position),
      batch_(batch_size(options_, samples)),
      piece_(piece_size(options_, batch_)) {
  check_options(options_, samples, batch_, piece_);
  pieces_per_batch_ = divide_up(batch_, piece_);
  pieces_ = samples / batch_ * pieces_per_batch_ + divide_up(samples % batch_, piece_);
  steps_per_epoch_ = divide_up(divide_up(samples, batch_), options_.accumulate);
  order_.resize(samples);
}

void EpochLoop::check_pieces(std::size_t leaf_samples) const {
  if (leaf_samples == 0 || piece_ >= batch_ || piece_ % leaf_samples == 0) return;
  throw_invalid(fmt::format(
      "parallel_examples is {}; it must be a multiple of {}, at which the sums over samples of this model are cut",
      piece_, leaf_samples));
}

std::size_t EpochLoop::leaves_of_step(std::size_t leaf_samples) const {
  return std::min(options_.accumulate, divide_up(samples_, batch_)) * divide_up(batch_, leaf_samples);
}

void EpochLoop::check_leaves(std::uint64_t leaves, std::size_t leaf_samples) const {
  if (position_.batch >= pieces_) return;  // the epoch, and with it the step, is complete
  const Piece next = next_piece();
  std::size_t expected = next.first % batch_ / leaf_samples;
  expected += next.batch % options_.accumulate * divide_up(batch_, leaf_samples);
  if (std::max<std::uint64_t>(1, leaves) != expected)
    throw_invalid(fmt::format("the state has summed {} leaves of a step, but its position needs {}", leaves, expected));
}

double EpochLoop::learning_rate() const {
  const std::uint64_t total = options_.epochs * steps_per_epoch_;
  return options_.optimizer.lr * schedule_factor(options_.schedule, position_.step, total);
}

std::span<const std::uint32_t> EpochLoop::rows(const Piece& piece) {
  const std::uint64_t epoch = position_.run_epoch;
  if (order_epoch_ != epoch) {
    if (options_.shuffle)
      random_permutation(RandomStream(options_.seed, RandomUse::shuffle, static_cast<std::uint32_t>(epoch)), order_);
    else
      for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
    order_epoch_ = epoch;
  }
  return std::span<const std::uint32_t>(order_).subspan(piece.first, piece.count);
}

Piece EpochLoop::next_piece() const {
  Piece p;
  p.batch = position_.batch / pieces_per_batch_;
  const std::size_t done = position_.batch % pieces_per_batch_ * piece_;
  const std::size_t of_batch = std::min(batch_, samples_ - p.batch * batch_);
  p.first = p.batch * batch_ + done;
  p.count = std::min(piece_, of_batch - done);
  const std::size_t step_first = p.batch / options_.accumulate * options_.accumulate * batch_;
  const std::size_t step_last = std::min(samples_, step_first + options_.accumulate * batch_);
  p.gradient = p.first == step_first ? GradientMode::overwrite : GradientMode::accumulate;
  p.completes_step = p.first + p.count == step_last;
  p.loss = options_.loss;
  p.loss.samples = step_last - step_first;
  p.share = static_cast<double>(p.loss.samples);
  if (p.loss.reduction == Reduction::sum) {  // over a batch; several of them are averaged
    const double batches = static_cast<double>(divide_up(p.loss.samples, batch_));
    p.loss.scale /= batches;
    p.share = batches * static_cast<double>(of_batch);
  }
  p.learning_rate = learning_rate();
  return p;
}

bool EpochLoop::step() {
  if (position_.batch >= pieces_) return false;
  const Piece piece = next_piece();
  compute(piece);
  position_.epoch_samples += piece.count;
  ++position_.batch;
  if (piece.completes_step) {
    ++position_.step;
    ++position_.optimizer_age;
  }
  return true;
}

EpochReport EpochLoop::finish_epoch(const TrainHooks& hooks) {
  sync();
  TrainPosition& at = position_;
  EpochReport report;
  report.learning_rate = learning_rate();
  report.loss = at.epoch_loss / static_cast<double>(std::max<std::uint64_t>(1, at.epoch_samples));
  if (hooks.validate) report.validation = hooks.validate();
  const Best best = keep_best(hooks.validate ? report.validation : report.loss);
  report.improved = best.improved;
  if (best.improved) {
    at.epochs_without_progress = 0;
  } else if (best.tracked) {
    ++at.epochs_without_progress;
    if (options_.patience > 0 && at.epochs_without_progress >= options_.patience) at.stage_done = true;
  }
  ++at.epoch;
  ++at.run_epoch;
  at.batch = 0;
  at.epoch_loss = 0.0;
  at.epoch_samples = 0;
  report.position = at;
  return report;
}

StageEnd EpochLoop::run(const TrainHooks& hooks) {
  TrainPosition& at = position_;
  while (at.epoch < options_.epochs && !at.stage_done) {
    while (step())
      if (hooks.after_step && hooks.after_step(at) == Continue::stop) {
        sync();
        return StageEnd::stopped;
      }
    const EpochReport report = finish_epoch(hooks);
    if (hooks.after_epoch && hooks.after_epoch(report) == Continue::stop) return StageEnd::stopped;
  }
  return StageEnd::finished;
}

std::size_t first_leaf(const Piece& piece, std::uint64_t leaves) {
  // A state that speaks of no leaves was half done by something that needs no more than level 0.
  return piece.gradient == GradientMode::accumulate ? std::max<std::size_t>(1, leaves) : 0;
}

double shown(double value) { return std::isnan(value) ? std::abs(value) : value; }

void fail_norm(double norm, const TrainPosition& at) {
  throw Exception(
      ErrorCode::numeric,
      fmt::format("the norm of the gradient is {} in epoch {}: training diverged, or the loss is too large; "
                  "try a smaller optimizer.lr, loss.reduction = \"mean\" or precision = \"float64\"",
                  shown(norm), at.run_epoch + 1));
}

template <class T>
void prepare_state(const TrainOptions& options, const Slices& parameters, const Slices& buffers, TrainState<T>& state) {
  const std::size_t size = parameters.flat_size();
  if (state.parameters.size() != size || state.buffers.size() != buffers.flat_size())
    throw_invalid(fmt::format("the state holds {} parameters and {} buffers (with padding), the model has {} and {}",
                              state.parameters.size(), state.buffers.size(), size, buffers.flat_size()));
  if (state.gradient.size() != size) {
    state.gradient = Buffer<T>(size), state.levels = {};
    state.leaves = 0;
  }
  if (options.patience > 0 && !state.best) state.best.emplace();
}

template <class T>
EpochLoop::Best keep_best_parameters(TrainState<T>& state, double loss) {
  if (!state.best) return {};
  if (!(loss < state.best->loss)) return {.tracked = true};
  state.best->loss = loss;
  state.best->run_epoch = state.position.run_epoch;
  if (state.best->parameters.size() != state.parameters.size())
    state.best->parameters = Buffer<T>(state.parameters.size());
  std::copy_n(state.parameters.data(), state.parameters.size(), state.best->parameters.data());
  return {.tracked = true, .improved = true};
}

template <class T>
void restart_optimizer(const TrainOptions& options, std::size_t samples, TrainState<T>& state) {
  TrainPosition& at = state.position;
  at.step -= std::min<std::uint64_t>(at.step, at.batch / pieces_of_step(options, samples));
  at.batch = at.optimizer_age = at.epoch_samples = 0;
  at.epoch_loss = 0.0;
  state.optimizer.clear();
  state.lbfgs = {};
  state.gradient = {}, state.levels = {};
  state.leaves = 0;
  state.residual = {};
}

template void restart_optimizer(const TrainOptions&, std::size_t, TrainState<float>&);
template void restart_optimizer(const TrainOptions&, std::size_t, TrainState<double>&);
template void prepare_state(const TrainOptions&, const Slices&, const Slices&, TrainState<float>&);
template void prepare_state(const TrainOptions&, const Slices&, const Slices&, TrainState<double>&);
template EpochLoop::Best keep_best_parameters(TrainState<float>&, double);
template EpochLoop::Best keep_best_parameters(TrainState<double>&, double);

}  // namespace gradloom
