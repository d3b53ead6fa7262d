// Trainer: runs one stage of training of any model on the CPU: forward, loss, backward, update.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <optional>

#include "gradloom/base/rounding.h"
#include "gradloom/exec/profile.h"
#include "gradloom/models/penalty.h"
#include "gradloom/train/encoded_share.h"
#include "gradloom/train/host_trainer.h"

namespace gradloom {

// A fresh state: arrays of the model's layout with the values that the model initialises them to.
template <class M>
requires Model<M, typename M::Scalar> TrainState<typename M::Scalar> initial_state(const M& model, std::uint64_t seed) {
  TrainState<typename M::Scalar> state;
  state.parameters = Buffer<typename M::Scalar>(model.parameters().flat_size());
  state.buffers = Buffer<typename M::Scalar>(model.buffers().flat_size());
  model.initialise(seed, state.parameters.span(), state.buffers.span());
  return state;
}

// Data that the trainer can batch: RowDataset and its kin.
template <class D, class Batch>
concept Dataset = requires(const D& d, std::span<const std::uint32_t> rows, typename D::Storage& storage,
                           std::size_t n) {
  { d.size() } -> std::convertible_to<std::size_t>;
  { d.make_storage(n) } -> std::same_as<typename D::Storage>;
  { d.gather(rows, storage) } -> std::same_as<Batch>;
  { d.all() } -> std::same_as<Batch>;
};

// Data without an end: `draw` makes the rows of an epoch anew, as a function of (epoch, row) alone. all() is then a
// fixed set of the same kind, on which L-BFGS works.
template <class D, class Batch>
concept DrawnDataset = Dataset<D, Batch> &&
    requires(const D& d, std::uint64_t epoch, std::span<const std::uint32_t> rows, typename D::Storage& storage) {
  { d.draw(epoch, rows, storage) } -> std::same_as<Batch>;
};

// Samples of a leaf that ranks may compute by itself; 0: none. Statistics of a batch (batch norm) tie its samples
// together.
template <class M>
std::size_t shared_leaf_samples(const M& model) {
  if constexpr (HasRunningBuffers<M>)
    if (model.buffers().flat_size() > 0) return 0;
  if constexpr (HasLeaves<M>) return model.leaf_samples();
  return 0;
}

// Whether ranks can share the steps of a model.
template <class M>
bool ranks_can_share(const M& model) {
  if constexpr (HasShards<M>) return model.shards(1).count > 0;
  if constexpr (HasParts<M>) return true;
  return shared_leaf_samples(model) > 0 || shares_parts(model);
}

// Model and data belong to the caller and outlive the trainer. Memory is made in the constructor.
template <class M, class D>
requires Model<M, typename M::Scalar> && Dataset<D, typename M::Batch>
class Trainer final : public HostTrainer<typename M::Scalar> {
 public:
  using T = typename M::Scalar;
  using Batch = typename M::Batch;
  using Samples = typename HostTrainer<T>::Samples;

  Trainer(const Exec& ex, const M& model, const D& data, TrainOptions options, TrainState<T>& state)
      : HostTrainer<T>(ex, model.parameters(), model.buffers(), data.size(), std::move(options), state),
        model_(model),
        data_(data),
        tape_(model.make_tape(ex, {.batch = this->largest_piece()})),
        storage_(data.make_storage(kDrawn || this->largest_piece() < data.size() ? this->largest_piece() : 0)),
        stride_(padded(model.output_width())),
        y_(stride_ * this->largest_piece()),
        dl_dy_(stride_ * this->largest_piece()),
        partials_(loss_partials(this->largest_piece())) {
    if constexpr (HasLeaves<M>) this->check_pieces(model.leaf_samples());
    // A compressed gradient left it over; no gradient travels here.
    state.residual = {};
  }

  std::size_t tape_bytes() const { return tape_.bytes(); }
  const typename M::Tape& tape() const { return tape_; }

 private:
  static constexpr bool kDrawn = DrawnDataset<D, Batch>;

  void load(const Piece& piece) override {
    const ProfileScope scope(this->exec(), this->phases_.data);
    if (this->options().optimizer.kind == OptimizerKind::lbfgs) {
      batch_ = data_.all();
      return;
    }
    const auto rows = this->rows(piece);
    loaded_rows_ = rows;
    if constexpr (kDrawn)
      batch_ = data_.draw(this->position().run_epoch, rows, storage_);
    else
      batch_ = this->one_piece() ? data_.all() : data_.gather(rows, storage_);
  }

  double evaluate(const Step& step, const LossOptions& loss, std::span<const T> parameters, std::span<T> gradient,
                  GradientSink* sink) override {
    const Exec& ex = this->exec();
    const std::size_t out = model_.output_width();
    const View<T, 2> y(y_.data(), {batch_.size, out}, {stride_, 1});
    const View<T, 2> dl_dy(dl_dy_.data(), {batch_.size, out}, {stride_, 1});
    {
      const ProfileScope scope(ex, this->phases_.forward);
      model_.forward(ex, step, this->arrays(parameters), batch_, tape_, y);
    }
    double value = 0.0;
    {
      const ProfileScope scope(ex, this->phases_.loss);
      value = evaluate_loss<T>(ex, loss, batch_, y, dl_dy, partials_);
    }
    if (!std::isfinite(value)) return value;
    const ProfileScope scope(ex, this->phases_.backward);
    this->make_levels(step.leaf + leaves());
    model_.backward(ex, {.step = step,
                         .arrays = this->arrays(parameters),
                         .batch = batch_,
                         .tape = tape_,
                         .dl_dy = dl_dy,
                         .gradient = gradient,
                         .sink = sink,
                         .levels = this->state().levels.span()});
    if constexpr (HasPenalty<M>)
      if (step.gradient_is == GradientIs::complete) value += tape_.penalty();
    return value;
  }

  // Samples whose loss is summed by itself; shares of rows hold whole ones.
  static constexpr bool kRows = std::is_same_v<Batch, RowBatch<T>>;
  static constexpr bool kSums = kRows && !HasShards<M>;

  std::size_t leaf_samples() const override {
    const bool drawn_at_once = kDrawn && this->options().optimizer.kind == OptimizerKind::lbfgs;
    return drawn_at_once ? 0 : shared_leaf_samples(model_);
  }
  std::size_t share_samples() const override { return kSums ? kernels::loss::kChunk : 1; }
  std::size_t loaded() const override { return batch_.size; }
  double factor_of(const LossOptions& loss) const override { return loss_factor(loss, batch_, model_.output_width()); }

  View<T, 2> rows_of(Buffer<T>& values, Samples of) const {
    return {values.data() + of.first * stride_, {of.count, model_.output_width()}, {stride_, 1}};
  }

  // Rows are cut out of the batch; other samples are gathered anew.
  Batch part_of(Samples of) {
    if constexpr (kRows) {
      return middle_rows(batch_, of.first, of.count);
    } else {
      if (!part_storage_) part_storage_.emplace(data_.make_storage(this->largest_piece()));
      part_rows_.resize(of.count);
      const bool in_order = this->one_piece() && !kDrawn;  // load() took up all of them
      for (std::size_t i = 0; i < of.count; ++i)
        part_rows_[i] = in_order ? static_cast<std::uint32_t>(of.first + i) : loaded_rows_[of.first + i];
      if constexpr (kDrawn)
        return data_.draw(this->position().run_epoch, part_rows_, *part_storage_);
      else
        return data_.gather(part_rows_, *part_storage_);
    }
  }

  void evaluate_part(const Step& step, const LossOptions& loss, Samples of, std::span<const T> parameters,
                     std::span<T> gradient, std::span<T> levels, GradientSink* sink) override {
    const Exec& ex = this->exec();
    const Batch part = part_of(of);
    const View<T, 2> y = rows_of(y_, of), dl_dy = rows_of(dl_dy_, of);
    if constexpr (HasParts<M>) model_.place(tape_, batch_.size);
    {
      const ProfileScope scope(ex, this->phases_.forward);
      model_.forward(ex, step, this->arrays(parameters), part, tape_, y);
    }
    {
      const ProfileScope scope(ex, this->phases_.loss);
      evaluate_loss<T>(ex, loss, part, y, dl_dy, partials_);
    }
    const ProfileScope scope(ex, this->phases_.backward);
    model_.backward(ex, {.step = step,
                         .arrays = this->arrays(parameters),
                         .batch = part,
                         .tape = tape_,
                         .dl_dy = dl_dy,
                         .gradient = gradient,
                         .sink = sink,
                         .levels = levels});
  }

  std::vector<std::size_t> finishing_order() const override {
    if constexpr (HasFinishingOrder<M>) return model_.finishing_order();
    return {};
  }

  // Rows: the sums of chunks of samples; others: the outputs, from which every rank sums the loss.
  void sum_share(const LossOptions& loss, Samples of) override {
    if constexpr (kSums) {
      if (of.count == 0) return;
      const auto sums = std::span(partials_).subspan(of.first / kernels::loss::kChunk);
      evaluate_loss<T>(this->exec(), loss, middle_rows(batch_, of.first, of.count), rows_of(y_, of), {}, sums);
    }
  }
  std::span<std::byte> share_loss(Samples of) override {
    if constexpr (kSums)
      return std::as_writable_bytes(
          std::span(partials_).subspan(of.first / kernels::loss::kChunk, loss_partials(of.count)));
    else
      return std::as_writable_bytes(y_.span().subspan(of.first * stride_, of.count * stride_));
  }
  double total_loss(const LossOptions& loss) override {
    if constexpr (kSums)
      return kernels::loss::finish(loss, *loss.factor, std::span(partials_).first(loss_partials(batch_.size)));
    else
      return evaluate_loss<T>(this->exec(), loss, batch_, rows_of(y_, {0, batch_.size}), {}, partials_);
  }
  ShardLayout shards(std::size_t samples) const override {
    if constexpr (HasShards<M>) {
      const bool drawn_at_once = kDrawn && this->options().optimizer.kind == OptimizerKind::lbfgs;
      return drawn_at_once ? ShardLayout{} : model_.shards(samples);
    }
    if constexpr (HasParts<M>) return model_.parts(samples);
    return HostTrainer<T>::shards(samples);
  }
  bool has_parts() const override { return HasParts<M>; }
  std::size_t shard_numbers() const override {
    if constexpr (HasShards<M>) return model_.shard_numbers();
    return model_.parameters().flat_size();
  }
  void sum_shards(const Step& step, const LossOptions& loss, Samples of, std::span<const T> parameters) override {
    if constexpr (HasShards<M>) {
      const Exec& ex = this->exec();
      const Batch part = part_of(of);
      const View<T, 2> y = rows_of(y_, of), dl_dy = rows_of(dl_dy_, of);
      model_.place(tape_, of.first, batch_.size);
      {
        const ProfileScope scope(ex, this->phases_.forward);
        model_.forward(ex, step, this->arrays(parameters), part, tape_, y);
      }
      if (of.count == 0) return;
      {
        const ProfileScope scope(ex, this->phases_.loss);
        evaluate_loss<T>(ex, loss, part, y, dl_dy, partials_);
      }
      const ProfileScope scope(ex, this->phases_.backward);
      model_.sum_shards(
          ex, {.step = step, .arrays = this->arrays(parameters), .batch = part, .tape = tape_, .dl_dy = dl_dy});
    }
  }
  void add_shards(std::size_t first, std::size_t count, std::span<T> to) override {
    if constexpr (HasShards<M>) model_.add_shards(tape_, first, count, to);
  }
  void finish_shards(const Step& step, std::span<const T> parameters, std::span<T> sums,
                     std::span<T> gradient) override {
    if constexpr (HasShards<M>)
      model_.finish_shards(this->exec(),
                           {.step = step,
                            .arrays = this->arrays(parameters),
                            .batch = batch_,
                            .tape = tape_,
                            .gradient = gradient,
                            .levels = this->state().levels.span()},
                           sums);
    if constexpr (HasParts<M>) {
      const std::size_t size = gradient.size();
      const kernels::reduce::TreeSum<T> tree{
          .root = gradient.data(), .upper = this->state().levels.data(), .stride = size};
      kernels::reduce::add_leaf(tree, step.leaf, sums.data(), 0, size);
      if (step.gradient_is == GradientIs::complete) kernels::reduce::finish_levels(tree, step.leaf + 1, 0, size);
    }
  }
  std::size_t most_parts() const override {
    if constexpr (HasEncoder<M>)
      if (shares_parts(model_))
        return this->largest_piece() < this->samples() ? std::min(2 * this->largest_piece(), data_.graphs().size())
                                                       : data_.graphs().size();
    return 0;
  }
  void encode(const Step& step, LeafShare of, std::span<const T> parameters) override {
    if constexpr (HasEncoder<M>) {
      const ProfileScope scope(this->exec(), this->phases_.forward);
      if (!encoded_) {
        const std::size_t parts = most_parts();
        encoded_.emplace(this->exec(), model_, data_, parts, divide_up(parts, this->options().comm->size()));
      }
      encoded_->encode(step, this->arrays(parameters), batch_, of);
    }
  }
  std::span<std::byte> codes_of(LeafShare of) override {
    if constexpr (HasEncoder<M>) return encoded_->codes_of(of);
    return {};
  }
  double run_head(const Step& step, const LossOptions& loss, std::span<const T> parameters) override {
    if constexpr (HasEncoder<M>) {
      const Exec& ex = this->exec();
      const View<T, 2> y = rows_of(y_, {0, batch_.size}), dl_dy = rows_of(dl_dy_, {0, batch_.size});
      {
        const ProfileScope scope(ex, this->phases_.forward);
        encoded_->head_forward(step, this->arrays(parameters), batch_, tape_, y);
      }
      const double value = evaluate_loss<T>(ex, loss, batch_, y, dl_dy, partials_);
      const ProfileScope scope(ex, this->phases_.backward);
      if (std::isfinite(value)) encoded_->head_backward(step, this->arrays(parameters), batch_, tape_, dl_dy);
      return value;
    }
    return 0.0;
  }
  void sum_encoded(const Step& step, LeafShare of, std::span<const T> parameters, std::span<T> gradient,
                   std::span<T> levels) override {
    if constexpr (HasEncoder<M>) {
      const ProfileScope scope(this->exec(), this->phases_.backward);
      encoded_->sum_part(step, this->arrays(parameters), batch_, of, gradient, levels);
    }
  }
  bool finishes_gradient() const override {
    if constexpr (HasPenalty<M>) return !model_.sums_are_gradient();
    return FinishesGradient<M>;
  }
  double finish_gradient(const Step& step, std::span<const T> parameters, std::span<T> gradient) override {
    if constexpr (FinishesGradient<M>) model_.finish_gradient(this->exec(), step, this->arrays(parameters), gradient);
    if constexpr (HasPenalty<M>) return model_.complete_gradient(this->exec(), step, parameters, tape_, gradient);
    return 0.0;
  }

  std::size_t leaves() const override {
    if constexpr (HasLeaves<M>)
      return model_.leaves(batch_);
    else
      return 0;
  }

  void update_buffers() override {
    if constexpr (HasRunningBuffers<M>) model_.update_buffers(tape_, this->state().buffers.span());
  }

  const M& model_;
  const D& data_;
  typename M::Tape tape_;
  typename D::Storage storage_;
  Batch batch_;
  std::size_t stride_;
  Buffer<T> y_, dl_dy_;
  std::vector<double> partials_;
  std::span<const std::uint32_t> loaded_rows_;
  std::optional<typename D::Storage> part_storage_;  // of samples that are gathered for a share
  std::vector<std::uint32_t> part_rows_;
  struct None {};
  // Made by the first step that ranks share.
  std::conditional_t<HasEncoder<M>, std::optional<EncodedShare<M, D>>, None> encoded_;
};

template <class M, class D>
Trainer(const Exec&, const M&, const D&, TrainOptions, TrainState<typename M::Scalar>&) -> Trainer<M, D>;

}  // namespace gradloom
