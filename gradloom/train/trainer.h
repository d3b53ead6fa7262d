// Trainer: runs one stage of training of any model on the CPU: forward, loss, backward, update.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>

#include "gradloom/base/rounding.h"
#include "gradloom/exec/profile.h"
#include "gradloom/models/penalty.h"
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

// Model and data belong to the caller and outlive the trainer. Memory is made in the constructor.
template <class M, class D>
requires Model<M, typename M::Scalar> && Dataset<D, typename M::Batch>
class Trainer final : public HostTrainer<typename M::Scalar> {
 public:
  using T = typename M::Scalar;
  using Batch = typename M::Batch;

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
};

template <class M, class D>
Trainer(const Exec&, const M&, const D&, TrainOptions, TrainState<typename M::Scalar>&) -> Trainer<M, D>;

}  // namespace gradloom
