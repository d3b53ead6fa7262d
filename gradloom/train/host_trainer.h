// HostTrainer: an EpochLoop whose optimizer works on the host. Who derives from it computes losses and gradients.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "gradloom/exec/exec.h"
#include "gradloom/models/shards.h"
#include "gradloom/train/epoch_loop.h"
#include "gradloom/train/lbfgs.h"
#include "gradloom/train/rank_sum.h"

namespace gradloom {

// The state belongs to the caller and must match the model's layout; an empty optimizer state is created, a present one
// continues. A steady-state step allocates nothing; of one that ranks share, what carries their messages may.
template <class T>
class HostTrainer : public EpochLoop {
 public:
  ~HostTrainer() override;
  void reset_optimizer() override;
  std::vector<unsigned> idle_ranks() const override;
  void collect_state(StateOf which) override;

 protected:
  // The slices are those of the model and outlive the trainer. Throws invalid_input, naming what does not fit.
  HostTrainer(const Exec& ex, const Slices& parameters, const Slices& buffers, std::size_t samples,
              TrainOptions options, TrainState<T>& state);

  // Takes up the samples of a piece, for calls of evaluate().
  virtual void load(const Piece& piece) = 0;
  // The loss of those samples at these parameters; fills or adds to the gradient, unless the loss is not finite. The
  // sink is null where it is not wanted, and always when can_fuse() is false.
  virtual double evaluate(const Step& step, const LossOptions& loss, std::span<const T> parameters,
                          std::span<T> gradient, GradientSink* sink) = 0;
  virtual bool can_fuse() const { return true; }

  // For ranks that share a step: samples of a leaf, 0 where a step cannot be shared. What follows is asked only then.
  virtual std::size_t leaf_samples() const { return 0; }
  // Shares of a batch are cut at multiples of so many samples, beside leaves.
  virtual std::size_t share_samples() const { return 1; }
  // Of the samples that load() took up: how many there are, and the factor of their loss.
  virtual std::size_t loaded() const { return 0; }
  virtual double factor_of(const LossOptions&) const { return 1.0; }
  // Samples of what load() took up; first is a multiple of a leaf.
  struct Samples {
    std::size_t first = 0, count = 0;
  };
  // Both passes of some samples, which are an aligned range of leaves: their sums, in `gradient`. `loss` has a factor.
  // The sink may be null.
  virtual void evaluate_part(const Step&, const LossOptions&, Samples, std::span<const T> /*parameters*/,
                             std::span<T> /*gradient*/, std::span<T> /*levels*/, GradientSink* /*sink*/) {}
  // As HasFinishingOrder says; empty: the sink may hear nothing before the end.
  virtual std::vector<std::size_t> finishing_order() const { return {}; }
  // Behind that, for a share: completes what share_loss() is about.
  virtual void sum_share(const LossOptions&, Samples) {}
  // What is known of the loss of a share, in memory that holds that of all of them.
  virtual std::span<std::byte> share_loss(Samples) { return {}; }
  // Behind all shares: the loss of what load() took up.
  virtual double total_loss(const LossOptions&) { return 0.0; }
  // Where a batch is one leaf that ranks share by shards: those of so many samples, and what HasShards says.
  virtual ShardLayout shards(std::size_t) const { return {}; }
  virtual std::size_t shard_numbers() const { return 0; }
  virtual bool has_parts() const { return false; }  // as HasParts says: evaluate_part() gives their sums
  virtual void sum_shards(const Step&, const LossOptions&, Samples, std::span<const T> /*parameters*/) {}
  virtual void add_shards(std::size_t /*first*/, std::size_t /*count*/, std::span<T> /*to*/) {}
  virtual void finish_shards(const Step&, std::span<const T> /*parameters*/, std::span<T> /*sums*/,
                             std::span<T> /*gradient*/) {}
  // Where leaves are parts that samples have in common (HasEncoder): whether ranks share them, and the most of a batch.
  virtual std::size_t most_parts() const { return 0; }  // 0: they do not
  virtual void encode(const Step&, LeafShare, std::span<const T> /*parameters*/) {}
  virtual std::span<std::byte> codes_of(LeafShare) { return {}; }
  // With all codes: the loss of what load() took up, and, where it is finite, the gradients of head and codes.
  virtual double run_head(const Step&, const LossOptions&, std::span<const T> /*parameters*/) { return 0.0; }
  virtual void sum_encoded(const Step&, LeafShare, std::span<const T> /*parameters*/, std::span<T> /*gradient*/,
                           std::span<T> /*levels*/) {}
  // Whether finish_gradient() does anything: no part of the gradient is complete then without the others.
  virtual bool finishes_gradient() const { return false; }
  // Returns what the loss gets beside that of samples: a penalty.
  virtual double finish_gradient(const Step&, std::span<const T> /*parameters*/, std::span<T> /*gradient*/) {
    return 0.0;
  }

  // Of the samples that load() took up; 0: evaluate() adds their gradient to what there is.
  virtual std::size_t leaves() const { return 0; }
  // Room in the state for the sums of a step of so many leaves; what there is stays.
  void make_levels(std::size_t leaves);
  // After each piece, updated or not: statistics of its forward pass.
  virtual void update_buffers() {}

  const Exec& exec() const { return ex_; }
  TrainState<T>& state() { return state_; }
  ModelArrays<T> arrays(std::span<const T> parameters) const { return {parameters, state_.buffers.span()}; }
  struct {
    std::size_t data = 0, forward = 0, loss = 0, backward = 0, optimizer = 0, communication = 0;
  } phases_;  // of the profile

 private:
  class Fused;
  class Sender;
  // Whether the worker owns the cache lines of the parameters, after claim().
  enum class Lines { unclaimed, claimed };
  // What a worker has claimed last, side by side; in a cache line of its own.
  struct alignas(64) Claimed {
    std::size_t begin = 0, end = 0;
  };

  void compute(const Piece& piece) override;
  bool shares() const;
  std::size_t unit() const;
  // Whether a rank updates its own part of the parameters alone, and holds that part of the optimizer's memory.
  bool splits() const;
  void make_ranks();
  void hold_from(std::size_t first);
  void hold_own_part();
  void update_own_part(double lr);
  void update_range(std::size_t begin, std::size_t end);
  // evaluate(), by all ranks together where they share the step.
  double evaluate_step(const Step& step, const LossOptions& loss, std::span<const T> parameters, std::span<T> gradient,
                       GradientSink* sink);
  double evaluate_shared(const Step& step, LossOptions loss, std::span<const T> parameters, std::span<T> gradient);
  double evaluate_encoded(const Step& step, const LossOptions& loss, std::span<const T> parameters,
                          std::span<T> gradient);
  void share_codes(std::size_t parts);
  std::span<T> levels_of_part(std::size_t leaves);
  using SharedCall = typename RankSum<T>::Call;
  SharedCall shared_call(const Step& step, std::size_t leaves, std::size_t unit, std::span<T> gradient,
                         FunctionRef<std::span<std::byte>(LeafShare)> loss);
  void add_shares(const SharedCall& call);
  double evaluate_shards(const Step& step, LossOptions loss, std::span<const T> parameters, std::span<T> gradient);
  Best keep_best(double loss) override { return keep_best_parameters(state_, loss); }
  void lbfgs_step(const Piece& piece);
  Step step_of(const Piece& piece) const;
  void begin_update(double lr, double scale);
  void claim(std::size_t begin, std::size_t end);  // nothing with one thread
  void update_elements(std::size_t begin, std::size_t end, Lines lines);
  void apply_update(double lr);
  double clip_scale();

  const Exec& ex_;
  const Slices& parameters_;
  TrainState<T>& state_;
  std::vector<std::uint8_t> frozen_;  // one flag per slice
  std::vector<std::pair<std::size_t, std::size_t>> update_ranges_;
  std::vector<Claimed> claimed_;  // one per worker
  std::vector<T> reduce_scratch_;
  std::unique_ptr<ElementOptimizer<T>> elements_;
  std::unique_ptr<ElementOptimizer<T>> without_decay_;  // null: every slice decays alike
  std::vector<std::uint8_t> decays_;                    // one flag per slice
  std::unique_ptr<Lbfgs<T>> lbfgs_;
  std::unique_ptr<RankSum<T>> ranks_;  // made by the first shared step
  bool holds_part_ = false;            // of the optimizer's memory
  bool split_ = false;                 // some rank holds a part of it; the same on all ranks
  bool is_whole_at_0_ = false;         // but rank 0 all of it; the same on all ranks
  Buffer<T> part_levels_, shard_sum_;
};

}  // namespace gradloom
