#include "gradloom/train/host_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/base/error.h"
#include "gradloom/base/rounding.h"
#include "gradloom/exec/profile.h"
#include "gradloom/kernels/reduce/reduce.h"
#include "gradloom/kernels/reduce/tree_sum.h"

namespace gradloom {

// Updates each range as soon as its gradient is final, on the worker that has it in its cache.
template <class T>
class HostTrainer<T>::Fused final : public GradientSink {
 public:
  explicit Fused(HostTrainer& trainer) : trainer_(trainer) {
    std::fill(trainer.claimed_.begin(), trainer.claimed_.end(), Claimed{});
  }
  // Claims the next ranges of a worker as long as their lines stay in its cache until they are written.
  void expected(std::size_t begin, std::size_t end, unsigned worker) override {
    constexpr std::size_t kBytes = 128 * 1024;
    if (trainer_.ex_.threads() == 1) return;
    Claimed& claimed = trainer_.claimed_[worker];
    if (begin != claimed.end) claimed = {begin, begin};
    if ((end - claimed.begin) * sizeof(T) > kBytes) return;
    trainer_.claim(begin, end);
    claimed.end = end;
  }
  void finished(std::size_t begin, std::size_t end, unsigned worker) override {
    const ProfileScope scope(trainer_.ex_, trainer_.phases_.optimizer, worker);
    const Claimed& claimed = trainer_.claimed_[worker];
    const bool begun = begin >= claimed.begin && begin < claimed.end;
    const std::size_t middle = begun ? std::min(end, claimed.end) : begin;
    trainer_.update_elements(begin, middle, Lines::claimed);
    trainer_.update_elements(middle, end, Lines::unclaimed);
  }

 private:
  HostTrainer& trainer_;
};

// Sends each section of the sums as soon as it is complete, on the thread that talks to the other ranks.
template <class T>
class HostTrainer<T>::Sender final : public GradientSink {
 public:
  Sender(HostTrainer& trainer, const SharedCall& call) : trainer_(trainer), call_(call) {}
  void finished(std::size_t begin, std::size_t end, unsigned worker) override {
    RankSum<T>& ranks = *trainer_.ranks_;
    ranks.count_final(begin, end);
    if (worker > 0) return;
    const ProfileScope scope(trainer_.ex_, trainer_.phases_.communication, worker);
    ranks.send_complete(call_);
  }

 private:
  HostTrainer& trainer_;
  const SharedCall& call_;
};

template <class T>
HostTrainer<T>::HostTrainer(const Exec& ex, const Slices& parameters, const Slices& buffers, std::size_t samples,
                            TrainOptions train_options, TrainState<T>& state)
    : EpochLoop(std::move(train_options), samples, state.position),
      ex_(ex),
      parameters_(parameters),
      state_(state),
      frozen_(match_slices(parameters, options().freeze, "freeze")),
      claimed_(ex.threads()) {
  prepare_state(options(), parameters, buffers, state);
  const std::size_t size = parameters.flat_size();
  reduce_scratch_.resize(kernels::reduce::reduce_scratch(size));
  for (std::size_t s = 0; s < parameters.size(); ++s) {
    const Slice& slice = parameters[s];
    if (!frozen_[s]) {
      update_ranges_.emplace_back(slice.offset, slice.end());
      continue;
    }
    // L-BFGS follows the whole gradient and its history: neither may move a frozen slice.
    std::fill_n(state.gradient.data() + slice.offset, slice.stored_size(), T(0));
    const auto moved = [&](const Buffer<T>& step) {
      return std::any_of(step.data() + slice.offset, step.data() + slice.end(), [](T v) { return v != 0; });
    };
    if (std::any_of(state.lbfgs.steps.begin(), state.lbfgs.steps.end(), moved)) state.lbfgs = {};
  }

  const OptimizerOptions& optimizer = options().optimizer;
  if (optimizer.kind == OptimizerKind::lbfgs)
    lbfgs_ = std::make_unique<Lbfgs<T>>(ex, optimizer, size, state.lbfgs);
  else
    elements_ = std::make_unique<ElementOptimizer<T>>(optimizer, size, state.optimizer);
  if (elements_ && !options().decay.empty()) {
    decays_ = match_slices(parameters, options().decay, "decay");
    OptimizerOptions plain = optimizer;
    plain.weight_decay = 0.0;
    without_decay_ = std::make_unique<ElementOptimizer<T>>(plain, size, state.optimizer);
  }
  if (Profile* profile = ex.profile()) {
    phases_.data = profile->phase("data");
    phases_.forward = profile->phase("forward");
    phases_.loss = profile->phase("loss");
    phases_.backward = profile->phase("backward");
    phases_.optimizer = profile->phase("optimizer");
    if (options().comm) phases_.communication = profile->phase("communication");
  }
}

template <class T>
HostTrainer<T>::~HostTrainer() = default;

template <class T>
void HostTrainer<T>::reset_optimizer() {
  for (OptimizerState<T>& s : state_.optimizer) std::fill_n(s.values.data(), s.values.size(), T(0));
  if (lbfgs_) lbfgs_->reset();
  state_.position.optimizer_age = 0;
}

template <class T>
Step HostTrainer<T>::step_of(const Piece& piece) const {
  Step step;
  step.gradient = piece.gradient;
  step.leaf = first_leaf(piece, state_.leaves);
  step.gradient_is = piece.completes_step ? GradientIs::complete : GradientIs::partial;
  step.seed = options().seed;
  step.epoch = static_cast<std::uint32_t>(position().run_epoch);
  step.index = static_cast<std::uint32_t>(position().batch);
  step.frozen = frozen_;
  return step;
}

template <class T>
void HostTrainer<T>::make_levels(std::size_t leaves) {
  const std::size_t size = (kernels::reduce::tree_levels(leaves) - 1) * parameters_.flat_size();
  if (size <= state_.levels.size()) return;
  Buffer<T> more(size);
  std::copy_n(state_.levels.data(), state_.levels.size(), more.data());
  state_.levels = std::move(more);
}

template <class T>
void HostTrainer<T>::begin_update(double lr, double scale) {
  elements_->begin_step(position().optimizer_age, lr, scale);
  if (without_decay_) without_decay_->begin_step(position().optimizer_age, lr, scale);
}

template <class T>
void HostTrainer<T>::claim(std::size_t begin, std::size_t end) {
  if (ex_.threads() > 1) claim_lines(state_.parameters.span().subspan(begin, end - begin));
}

template <class T>
void HostTrainer<T>::update_elements(std::size_t begin, std::size_t end, Lines lines) {
  const auto update = [&](ElementOptimizer<T>& how, std::size_t from, std::size_t to) {
    constexpr std::size_t kAtOnce = 4096;  // numbers that stay in the cache until they are written
    for (std::size_t next; from < to; from = next) {
      next = std::min(to, from + kAtOnce);
      if (lines == Lines::unclaimed) claim(from, next);
      how.update(ex_.variant(), from, next, state_.parameters.span(), state_.gradient.span());
    }
  };
  if (!without_decay_) return update(*elements_, begin, end);
  for (std::size_t s = 0; s < parameters_.size(); ++s) {
    const Slice& slice = parameters_[s];
    update(decays_[s] ? *elements_ : *without_decay_, std::max(begin, slice.offset), std::min(end, slice.end()));
  }
}

template <class T>
double HostTrainer<T>::clip_scale() {
  const double limit = options().optimizer.clip_norm;
  if (!(limit > 0)) return 1.0;
  double squares = 0.0;
  for (const auto& [begin, end] : update_ranges_) {
    const auto range = std::span<const T>(state_.gradient.span()).subspan(begin, end - begin);
    squares += static_cast<double>(kernels::reduce::sum_of_squares<T>(ex_, range, reduce_scratch_));
  }
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) fail_norm(norm, position());
  return norm > limit ? limit / norm : 1.0;
}

template <class T>
void HostTrainer<T>::apply_update(double lr) {
  const ProfileScope scope(ex_, phases_.optimizer);
  begin_update(lr, clip_scale());
  for (const auto& [begin, end] : update_ranges_) update_range(begin, end);
}

template <class T>
void HostTrainer<T>::update_range(std::size_t begin, std::size_t end) {
  constexpr std::size_t kRange = 8192;
  ex_.parallel_for(divide_up(end - begin, kRange), [&](std::size_t task, unsigned) {
    const std::size_t from = begin + task * kRange;
    update_elements(from, std::min(end, from + kRange), Lines::unclaimed);
  });
}

// The norm of a gradient, and the sums of which a gradient is made behind the last leaf, need all of it.
template <class T>
bool HostTrainer<T>::splits() const {
  return shares() && (leaf_samples() > 0 || most_parts() > 0) && elements_ && !finishes_gradient() &&
         !(options().optimizer.clip_norm > 0);
}

template <class T>
void HostTrainer<T>::make_ranks() {
  if (ranks_) return;
  const std::vector<std::size_t> order = finishing_order();
  if (!order.empty() && order.size() != parameters_.size())
    throw_invalid(fmt::format("the model finishes {} of its {} slices", order.size(), parameters_.size()));
  typename RankSum<T>::Ranges finishing;
  for (const std::size_t s : order)
    if (!frozen_[s]) finishing.emplace_back(parameters_[s].offset, parameters_[s].end());
  using Cut = typename RankSum<T>::Cut;
  ranks_ =
      std::make_unique<RankSum<T>>(*options().comm, parameters_.flat_size(), order.empty() ? update_ranges_ : finishing,
                                   order.empty() ? Cut::one_section : Cut::sections);
}

template <class T>
void HostTrainer<T>::hold_from(std::size_t first) {
  elements_->hold_from(first);
  if (without_decay_) without_decay_->hold_from(first);
}

template <class T>
void HostTrainer<T>::hold_own_part() {
  split_ = true, is_whole_at_0_ = false;
  if (holds_part_) return;
  for (OptimizerState<T>& s : state_.optimizer) {
    Buffer<T> part(ranks_->own_size());
    T* to = part.data();
    for (const auto& [begin, end] : ranks_->own()) to = std::copy(s.values.data() + begin, s.values.data() + end, to);
    s.values = std::move(part);
  }
  holds_part_ = true;
}

template <class T>
void HostTrainer<T>::update_own_part(double lr) {
  {
    const ProfileScope scope(ex_, phases_.optimizer);
    hold_own_part();
    begin_update(lr, 1.0);
    std::size_t held = 0;
    for (const auto& [begin, end] : ranks_->own()) {
      hold_from(begin - held);
      update_range(begin, end);
      held += end - begin;
    }
  }
  const ProfileScope scope(ex_, phases_.communication);
  ranks_->share_own(state_.parameters.span());
}

template <class T>
void HostTrainer<T>::collect_state(StateOf which) {
  // Conditions that are equal on all ranks; holds_part_ is not, once rank 0 has the whole state.
  if (!split_ || (which == StateOf::rank_0 && is_whole_at_0_)) return;
  hold_own_part();
  const bool takes = which == StateOf::all_ranks || options().comm->rank() == 0;
  using To = typename RankSum<T>::To;
  for (OptimizerState<T>& s : state_.optimizer) {
    Buffer<T> whole(takes ? parameters_.flat_size() : 0);
    ranks_->collect(s.values.span(), whole.span(), which == StateOf::all_ranks ? To::all : To::rank_0);
    if (takes) s.values = std::move(whole);
  }
  split_ = which == StateOf::rank_0, is_whole_at_0_ = split_;
  if (!takes) return;
  hold_from(0);
  holds_part_ = false;
}

template <class T>
bool HostTrainer<T>::shares() const {
  return options().comm && options().comm->size() > 1 &&
         (leaf_samples() > 0 || most_parts() > 0 || shards(loaded()).count > 0);
}

template <class T>
std::vector<unsigned> HostTrainer<T>::idle_ranks() const {
  std::vector<unsigned> idle;
  const Comm* comm = options().comm;
  const ShardLayout layout = shards(largest_piece());
  if (!comm || comm->size() == 1) return idle;
  std::size_t leaves = layout.count, unit_leaves = layout.per_sample;
  if (most_parts() > 0) leaves = most_parts(), unit_leaves = 1;
  if (leaf_samples() > 0) leaves = divide_up(largest_piece(), leaf_samples()), unit_leaves = unit();
  for (unsigned rank = 0; rank < comm->size() && leaves > 0; ++rank)
    if (share_of(rank, comm->size(), leaves, unit_leaves).count == 0) idle.push_back(rank);
  return idle;
}

// Leaves at whose multiples shares are cut.
template <class T>
std::size_t HostTrainer<T>::unit() const {
  return std::max<std::size_t>(1, share_samples() / leaf_samples());
}

template <class T>
double HostTrainer<T>::evaluate_step(const Step& step, const LossOptions& loss, std::span<const T> parameters,
                                     std::span<T> gradient, GradientSink* sink) {
  if (!shares()) return evaluate(step, loss, parameters, gradient, sink);
  if (most_parts() > 0) return evaluate_encoded(step, loss, parameters, gradient);
  return leaf_samples() > 0 ? evaluate_shared(step, loss, parameters, gradient)
                            : evaluate_shards(step, loss, parameters, gradient);
}

namespace {

// The pass of an aligned range of leaves, whose sum others go on with.
Step step_of_part(Step step, const LeafNode& node) {
  step.leaf = 0, step.apart = node.first > 0;
  step.gradient = GradientMode::overwrite, step.gradient_is = GradientIs::partial;
  return step;
}

}  // namespace

// The same for a batch that is one leaf: what ranks add is the sums of shards.
template <class T>
double HostTrainer<T>::evaluate_shards(const Step& step, LossOptions loss, std::span<const T> parameters,
                                       std::span<T> gradient) {
  Comm& comm = *options().comm;
  const std::size_t numbers = shard_numbers(), samples = loaded();
  const ShardLayout layout = shards(samples);
  if (!ranks_) {
    const typename RankSum<T>::Ranges all = {{0, numbers}};
    ranks_ = std::make_unique<RankSum<T>>(comm, numbers, all, RankSum<T>::Cut::one_section);
    shard_sum_ = Buffer<T>(numbers);
  }
  const auto samples_of = [&](LeafShare of) {
    const std::size_t first = layout.sample_at(of.first, samples);
    return Samples{first, layout.sample_at(of.first + of.count, samples) - first};
  };
  loss.factor = factor_of(loss);
  const LeafShare share = share_of(comm.rank(), comm.size(), layout.count, layout.per_sample);
  if (!has_parts()) sum_shards(step, loss, samples_of(share), parameters);
  std::size_t i = 0;
  each_node(share.first, share.count, [&](const LeafNode& n) {
    const std::span<T> sum = ranks_->node_sum(i++);
    if (has_parts())
      evaluate_part(step_of_part(step, n), loss, samples_of({n.first, n.size()}), parameters, sum, {}, nullptr);
    else
      add_shards(n.first - share.first, n.size(), sum);
  });
  const std::size_t levels = (kernels::reduce::tree_levels(layout.count) - 1) * numbers;
  if (part_levels_.size() < levels) part_levels_ = Buffer<T>(levels);
  make_levels(step.leaf + 1);
  {
    const ProfileScope scope(ex_, phases_.communication);
    ranks_->finish(ex_, {.leaves = layout.count,
                         .unit = layout.per_sample,
                         .gradient = shard_sum_.span(),
                         .levels = part_levels_.span(),
                         .loss = [&](LeafShare of) { return share_loss(samples_of(of)); }});
  }
  finish_shards(step, parameters, shard_sum_.span(), gradient);
  return total_loss(loss);
}

// Each rank computes a share of the leaves; all end with the whole gradient and the loss of all samples.
template <class T>
double HostTrainer<T>::evaluate_shared(const Step& step, LossOptions loss, std::span<const T> parameters,
                                       std::span<T> gradient) {
  Comm& comm = *options().comm;
  make_ranks();
  const std::size_t of_leaf = leaf_samples(), samples = loaded(), all = divide_up(samples, of_leaf);
  const auto samples_of = [&](LeafShare leaves) {
    const std::size_t first = leaves.first * of_leaf;
    return Samples{first, std::min(samples, first + leaves.count * of_leaf) - std::min(samples, first)};
  };
  loss.factor = factor_of(loss);
  const LeafShare share = share_of(comm.rank(), comm.size(), all, unit());
  const auto loss_of = [&](LeafShare of) { return share_loss(samples_of(of)); };
  const SharedCall call = shared_call(step, all, unit(), gradient, loss_of);
  Sender sender(*this, call);
  std::size_t i = 0;
  each_node(step.leaf + share.first, share.count, [&](const LeafNode& node) {
    // Ranges before the last one are complete when that begins.
    const bool sends = ranks_->sections() > 1 && node.first + node.size() == step.leaf + share.first + share.count;
    evaluate_part(step_of_part(step, node), loss, samples_of({node.first - step.leaf, node.size()}), parameters,
                  ranks_->node_sum(i++), levels_of_part(node.size()), sends ? &sender : nullptr);
  });
  sum_share(loss, samples_of(share));
  add_shares(call);
  double value = total_loss(loss);
  if (step.gradient_is == GradientIs::complete) value += finish_gradient(step, parameters, gradient);
  return value;
}

// Each rank encodes a share of the parts, which are leaves; the head is computed by all of them, from all codes.
template <class T>
double HostTrainer<T>::evaluate_encoded(const Step& step, const LossOptions& loss, std::span<const T> parameters,
                                        std::span<T> gradient) {
  Comm& comm = *options().comm;
  make_ranks();
  const std::size_t all = leaves();
  const LeafShare share = share_of(comm.rank(), comm.size(), all, 1);
  encode(step, share, parameters);
  share_codes(all);
  const double value = run_head(step_of_part(step, {}), loss, parameters);
  if (!std::isfinite(value)) return value;  // on all ranks
  std::size_t i = 0;
  each_node(step.leaf + share.first, share.count, [&](const LeafNode& node) {
    sum_encoded(step_of_part(step, node), {node.first - step.leaf, node.size()}, parameters, ranks_->node_sum(i++),
                levels_of_part(node.size()));
  });
  const auto no_loss = [](LeafShare) { return std::span<std::byte>(); };
  add_shares(shared_call(step, all, 1, gradient, no_loss));
  return value;
}

template <class T>
void HostTrainer<T>::share_codes(std::size_t parts) {
  const ProfileScope scope(ex_, phases_.communication);
  Comm& comm = *options().comm;
  comm.share_parts([&](unsigned rank) { return codes_of(share_of(rank, comm.size(), parts, 1)); });
}

// Memory for the upper levels of an aligned range of so many leaves.
template <class T>
std::span<T> HostTrainer<T>::levels_of_part(std::size_t leaves) {
  const std::size_t levels = (kernels::reduce::tree_levels(leaves) - 1) * parameters_.flat_size();
  if (part_levels_.size() < levels) part_levels_ = Buffer<T>(levels);
  return part_levels_.span();
}

template <class T>
typename HostTrainer<T>::SharedCall HostTrainer<T>::shared_call(const Step& step, std::size_t leaves, std::size_t unit,
                                                                std::span<T> gradient,
                                                                FunctionRef<std::span<std::byte>(LeafShare)> loss) {
  make_levels(step.leaf + leaves);
  return {.leaf = step.leaf,
          .leaves = leaves,
          .unit = unit,
          .complete = step.gradient_is == GradientIs::complete,
          .gradient = gradient,
          .levels = state_.levels.span(),
          .loss = loss};
}

// Behind the sums of the own share: the gradient, or the own part of it where ranks update their parts.
template <class T>
void HostTrainer<T>::add_shares(const SharedCall& call) {
  const ProfileScope scope(ex_, phases_.communication);
  if (call.complete && splits())
    ranks_->finish_own(ex_, call);
  else
    ranks_->finish(ex_, call);
}

template <class T>
void HostTrainer<T>::compute(const Piece& piece) {
  load(piece);
  const Step step = step_of(piece);
  if (lbfgs_) return lbfgs_step(piece);
  const bool fuse = piece.completes_step && options().fused == FusedUpdate::automatic &&
                    !(options().optimizer.clip_norm > 0) && can_fuse() && !shares();
  Fused sink(*this);
  if (fuse) begin_update(piece.learning_rate, 1.0);
  const double value =
      evaluate_step(step, piece.loss, state_.parameters.span(), state_.gradient.span(), fuse ? &sink : nullptr);
  if (!std::isfinite(value))
    throw Exception(
        ErrorCode::numeric,
        fmt::format("the loss is {} in epoch {}, batch {}: training diverged; try a smaller optimizer.lr or "
                    "clipping (optimizer.clip_norm)",
                    shown(value), position().run_epoch + 1, piece.batch + 1));
  state_.leaves = leaves() == 0 ? 0 : step.leaf + leaves();
  if (piece.completes_step && splits())
    update_own_part(piece.learning_rate);
  else if (piece.completes_step && !fuse)
    apply_update(piece.learning_rate);
  update_buffers();
  position().epoch_loss += value * piece.share;
}

template <class T>
void HostTrainer<T>::lbfgs_step(const Piece& piece) {
  const Step step = step_of(piece);
  const auto at_point = [&](std::span<const T> parameters, std::span<T> gradient) {
    return evaluate_step(step, options().loss, parameters, gradient, nullptr);
  };
  const LbfgsReport report = lbfgs_->step(at_point, state_.parameters.span(), state_.gradient.span());
  if (!std::isfinite(report.loss))
    throw Exception(ErrorCode::numeric, fmt::format("the loss is {} in epoch {}: the model cannot be evaluated",
                                                    shown(report.loss), position().run_epoch + 1));
  position().epoch_loss = report.loss * static_cast<double>(samples());
  if (report.stalled) position().stage_done = true;
}

template class HostTrainer<float>;
template class HostTrainer<double>;

}  // namespace gradloom
