// DeviceTrainer: an EpochLoop whose parameters, gradients, optimizer state and activations live on a Vulkan device.
//
// A step is one submit of a command buffer that was recorded once for its size of batch: the batch goes in, and nothing
// comes out. Losses gather on the device and are read at the end of an epoch, or when the state is asked for. The state
// on the host is that of the last sync(); hooks that read it call sync() first. A loss that is not finite stops all
// further updates on the device, so that the parameters stay those before the failing step; the next sync() throws
// Exception{numeric}.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "gradloom/kernels/optimizer/device.h"
#include "gradloom/kernels/shader/step.h"
#include "gradloom/train/device_loss.h"
#include "gradloom/train/trainer.h"

namespace gradloom {

// M is a DeviceModel, D a dataset of RowBatch. Every element-wise optimizer; L-BFGS and a model
// with a penalty are refused with unsupported. Model and data belong to the caller and outlive the trainer.
template <class M, class D>
requires DeviceModel<M>
class DeviceTrainer final : public EpochLoop {
 public:
  using T = typename M::Scalar;

  // Fails as Trainer does, and with unsuitable_device or device_memory when the device cannot hold the model and its
  // batches.
  DeviceTrainer(const Exec&, const M& model, const D& data, TrainOptions train_options, TrainState<T>& state,
                vulkan::Timestamps timestamps = vulkan::Timestamps::off)
      : EpochLoop(std::move(train_options), data.size(), state.position),
        model_(model),
        data_(data),
        state_(state),
        device_(model.device()),
        timestamps_(timestamps),
        frozen_(match_slices(model.parameters(), options().freeze, "freeze")),
        storage_(data.make_storage(largest_piece())) {
    if (options().optimizer.kind == OptimizerKind::lbfgs)
      throw Exception(ErrorCode::unsupported,
                      "optimizer.kind = \"lbfgs\" does not run on a device; set optimizer.device = \"host\"");
    if (options().compression.kind != kernels::compress::Compression::none)
      throw Exception(
          ErrorCode::invalid_input,
          "optimizer.compress is for gradients that are transferred to the host: set optimizer.device = \"host\"");
    if (completes_gradient(model.host()))
      throw Exception(ErrorCode::unsupported,
                      "the host computes a part of the gradient (model.sparsity, pruned edges); set "
                      "optimizer.device = \"host\"");
    if (!options().decay.empty()) decays_ = match_slices(model.parameters(), options().decay, "decay");
    prepare_state(options(), model.parameters(), model.buffers(), state);
    state.residual = {};  // a compressed gradient left it over; none travels here
    const std::size_t size = model.parameters().flat_size();
    const ElementOptimizer<T> makes_state(options().optimizer, size, state.optimizer);
    const auto flat = [&](std::size_t count) {
      return device_.make_buffer(count * sizeof(T), vulkan::BufferUse::device);
    };
    parameters_ = flat(size);
    buffers_ = flat(model.buffers().flat_size());
    gradient_ = flat(size);
    this->check_pieces(model.leaf_samples());
    tree_ = model.make_tree(largest_piece(), leaves_of_step(model.leaf_samples()));
    for (std::size_t i = 0; i < state.optimizer.size(); ++i) optimizer_.push_back(flat(size));
    status_ = device_.make_buffer(kMemoryAlignment, vulkan::BufferUse::device);
    device_.zero(status_);
    // Losses of many steps gather; where they do not fit, they are read in between.
    constexpr std::size_t kLossBytes = 1 << 20;
    loss_stride_ = 2 * kernels::loss::device_groups(largest_piece()) * sizeof(T);
    slots_ = std::clamp<std::size_t>(kLossBytes / loss_stride_, 1, batches_per_epoch());
    losses_ = device_.make_buffer(slots_ * loss_stride_, vulkan::BufferUse::device);
    model.require_backward(largest_piece());
    if (options().optimizer.clip_norm > 0) model.require_norm(largest_piece());
    tape_ = model.make_tape(largest_piece(), false);
    upload();
  }

  // Brings the host's state up to date: parameters, optimizer state, half-accumulated gradient, losses of this epoch.
  void sync() override {
    wait_all();
    const auto get = [&](const vulkan::DeviceBuffer& from, std::span<T> to) {
      device_.read(from, 0, std::as_writable_bytes(to));
    };
    get(parameters_, state_.parameters.span());
    for (std::size_t i = 0; i < optimizer_.size(); ++i) get(optimizer_[i], state_.optimizer[i].values.span());
    if (is_accumulating(options(), samples(), state_.position)) {
      get(gradient_, state_.gradient.span());
      read_levels(device_, tree_, state_.levels, state_.leaves, state_.gradient.size());
    }
    read_losses();
  }

  // After a change of parameters or buffers on the host: they go to the device, and the optimizer starts afresh.
  void reset_optimizer() override {
    wait_all();
    for (OptimizerState<T>& s : state_.optimizer) std::fill_n(s.values.data(), s.values.size(), T(0));
    state_.position.optimizer_age = 0;
    upload();
  }

  std::map<std::string, double> kernel_times() const override { return times_; }

 private:
  // A recorded step with the host memory that its batch is read from. Two of a kind, so that the host fills one while
  // the device works on the other.
  struct Recorded {
    vulkan::DeviceBuffer staging, samples;
    vulkan::DeviceBuffer norm;  // of the gradient, for clipping
    BatchLayout layout;
    vulkan::Commands commands;
    Recorded(vulkan::Device& device, vulkan::Timestamps timestamps) : commands(device, timestamps) {}
  };
  struct Key {
    std::size_t batch;
    GradientMode mode;
    bool tree;  // with the leaves before, whose number is in the head of the batch
    bool update;
    unsigned turn;
    auto operator<=>(const Key&) const = default;
  };
  struct LossEntry {
    std::size_t batch;
    double normaliser;  // of the sum of terms
    double share;       // of the value in the epoch's loss
  };

  // Records the update of each layer as soon as its gradient is final, beside the backward pass of the next layer. With
  // norm clipping nothing is final before everything is: updates are recorded at the end, all in one where that can be.
  class Update final : public DeviceSink {
   public:
    Update(DeviceTrainer& trainer, Recorded& step) : t_(trainer), step_(step) {}
    vulkan::Binding norm(std::size_t shares) override {
      if (!clips()) return {};
      step_.norm = kernels::optimizer::make_norm<T>(t_.device_, shares);
      return whole(step_.norm);
    }
    void finished(vulkan::Commands& commands, std::size_t begin, std::size_t end) override {
      if (clips())
        waiting_.push_back({begin, end});
      else
        update_range(commands, begin, end);
    }
    void finish(vulkan::Commands& commands) {
      if (waiting_.empty()) return;
      if (step_.norm.bytes() == 0)
        throw std::logic_error("a model did not say where the norm of its gradient is stored");
      // Ranges came from the last layer to the first. Between two of them lies padding, unless a frozen one is there.
      const Range all{waiting_.back().begin, waiting_.front().end};
      const bool any_frozen = std::any_of(t_.frozen_.begin(), t_.frozen_.end(), [](auto f) { return f != 0; });
      if (!any_frozen && t_.decays_.empty() && (all.end - all.begin) * sizeof(T) <= t_.device_.info().max_buffer_range)
        waiting_ = {all};
      for (const Range& r : waiting_) update_range(commands, r.begin, r.end);
    }

   private:
    struct Range {
      std::size_t begin, end;
      bool empty() const { return begin == end; }
    };
    bool clips() const { return t_.options().optimizer.clip_norm > 0; }

    // In pieces of which one run of elements decays: a layer is one.
    void update_range(vulkan::Commands& commands, std::size_t begin, std::size_t end) {
      if (t_.decays_.empty()) return update(commands, {begin, end}, {begin, end});
      Range piece{begin, begin}, decays{begin, begin};
      for (std::size_t s = 0; s < t_.decays_.size(); ++s) {
        const Slice& slice = t_.model_.parameters()[s];
        const std::size_t from = std::max(begin, slice.offset), to = std::min(end, slice.end());
        if (from >= to) continue;
        const bool run_ended = !decays.empty() && decays.end != piece.end;
        if (t_.decays_[s] != 0 && run_ended) {
          update(commands, piece, decays);
          piece = decays = {from, from};
        }
        if (t_.decays_[s] != 0) decays = {decays.empty() ? from : decays.begin, to};
        piece.end = to;
      }
      update(commands, piece, decays);
    }

    void update(vulkan::Commands& commands, Range range, Range decays) {
      kernels::optimizer::DevicePass pass;
      const auto of = [&](const vulkan::DeviceBuffer& b) { return t_.range(b, range.begin, range.end); };
      // What the kind has no use for is bound to what no other update touches.
      const auto state = [&](std::size_t i) {
        return i < t_.optimizer_.size() ? of(t_.optimizer_[i]) : pass.parameters;
      };
      pass.rule = optimizer_rule(t_.options().optimizer);
      pass.count = range.end - range.begin;
      pass.parameters = of(t_.parameters_);
      pass.gradient = of(t_.gradient_);
      pass.first = state(0);
      pass.second = state(1);
      pass.samples = whole(step_.samples);
      pass.status = whole(t_.status_);
      pass.clipped = clips();
      pass.decay_begin = decays.begin - range.begin;
      pass.decay_end = decays.end - range.begin;
      pass.norm = clips() ? whole(step_.norm) : whole(t_.status_);
      kernels::optimizer::record_update<T>(t_.device_, commands, pass, "optimizer");
    }

    DeviceTrainer& t_;
    Recorded& step_;
    std::vector<Range> waiting_;
  };

  void compute(const Piece& piece) override {
    const auto order = rows(piece);
    const RowBatch<T> batch = one_piece() ? data_.all() : data_.gather(order, storage_);
    check_loss_batch<T>(piece.loss, batch, model_.output_width());
    if (pending_.size() == slots_) read_losses();
    const std::size_t leaf = first_leaf(piece, state_.leaves), leaves = divide_up(piece.count, model_.leaf_samples());
    const Key key{piece.count, piece.gradient, model_.makes_tree(leaf, piece.count), piece.completes_step, turn_ ^= 1};
    Recorded& step = recorded(key, batch, leaf);
    step.commands.wait();
    if (timestamps_ == vulkan::Timestamps::on)
      for (const auto& time : step.commands.times()) times_[time.label] += time.microseconds * 1e-3;
    LossEntry entry{piece.count, 0.0, piece.share};
    fill_head(step.staging.host(), batch, piece, entry);
    kernels::set_step_leaf(step.staging.host(), leaf);
    pack_batch(batch, step.layout, step.staging.host());
    step.commands.submit();
    pending_.push_back(entry);
    state_.leaves = leaf + leaves;
  }
  Best keep_best(double loss) override { return keep_best_parameters(state_, loss); }

  void upload() {
    const auto put = [&](const vulkan::DeviceBuffer& to, std::span<const T> from) {
      device_.write(to, 0, std::as_bytes(from));
    };
    put(parameters_, state_.parameters.span());
    put(buffers_, state_.buffers.span());
    put(gradient_, state_.gradient.span());
    if (is_accumulating(options(), samples(), state_.position)) {
      check_leaves(state_.leaves, model_.leaf_samples());
      write_levels<T>(device_, tree_, state_.levels.span(), state_.leaves, state_.gradient.size());
    }
    for (std::size_t i = 0; i < optimizer_.size(); ++i) put(optimizer_[i], state_.optimizer[i].values.span());
  }

  void record_step(Recorded& to, const Key& key, std::size_t leaf) {
    vulkan::Commands& commands = to.commands;
    commands.copy(to.staging, 0, to.samples, 0, to.layout.bytes);
    commands.barrier();
    const DeviceArrays arrays{&parameters_, &buffers_, &gradient_, &tree_, &to.samples};
    const vulkan::Binding x{&to.samples, to.layout.x, key.batch * model_.input_width() * sizeof(T)};
    model_.record_forward(commands, arrays, tape_, key.batch, x);
    kernels::loss::DevicePass loss =
        loss_pass(model_, tape_, key.batch, options().loss.kind, to.layout, to.samples, buffers_);
    loss.losses = whole(losses_);
    loss.status = whole(status_);
    kernels::loss::record<T>(device_, commands, loss);
    commands.barrier();
    Step step;
    step.gradient = key.mode;
    step.gradient_is = key.update ? GradientIs::complete : GradientIs::partial;
    step.leaf = leaf;
    step.frozen = frozen_;
    Update update(*this, to);
    model_.record_backward(commands, step, arrays, tape_, key.batch, x, false, key.update ? &update : nullptr);
    update.finish(commands);
    commands.finish();
  }

  Recorded& recorded(const Key& key, const RowBatch<T>& batch, std::size_t leaf) {
    std::unique_ptr<Recorded>& found = steps_[key];
    if (found) return *found;
    auto made = std::make_unique<Recorded>(device_, timestamps_);
    made->layout = batch_layout(batch);
    device_.require_range(made->layout.bytes, fmt::format("a batch of {} samples", key.batch));
    made->staging = device_.make_buffer(made->layout.bytes, vulkan::BufferUse::upload);
    made->samples = device_.make_buffer(made->layout.bytes, vulkan::BufferUse::device);
    record_step(*made, key, leaf);
    found = std::move(made);
    return *found;
  }

  void fill_head(std::byte* head, const RowBatch<T>& batch, const Piece& piece, LossEntry& entry) const {
    entry.normaliser = kernels::loss::fill_head(head, piece.loss, wanted_of(batch), model_.output_width(),
                                                pending_.size() * kernels::loss::device_groups(largest_piece()));
    kernels::optimizer::fill_head(
        head, optimizer_step<T>(options().optimizer, position().optimizer_age, piece.learning_rate));
  }

  void wait_all() {
    for (auto& [key, step] : steps_) step->commands.wait();
  }

  void read_losses() {
    if (pending_.empty()) return;
    wait_all();
    std::vector<T> partials(slots_ * loss_stride_ / sizeof(T));
    device_.read(losses_, 0, std::as_writable_bytes(std::span(partials)));
    TrainPosition& at = state_.position;
    double bad = 0.0;
    bool failed = false;
    for (std::size_t slot = 0; slot < pending_.size() && !failed; ++slot) {
      const LossEntry& entry = pending_[slot];
      const double value = entry.normaliser *
                           kernels::loss::sum_pairs(
                               partials.data() + slot * kernels::loss::device_groups(largest_piece()) * 2, entry.batch);
      failed = !std::isfinite(value);
      bad = value;
      at.epoch_loss += value * entry.share;
    }
    pending_.clear();
    if (failed)
      throw Exception(
          ErrorCode::numeric,
          fmt::format("the loss is {} in epoch {}: training diverged; try a smaller optimizer.lr or clipping "
                      "(optimizer.clip_norm)",
                      shown(bad), at.run_epoch + 1));
    for (const auto& [key, step] : steps_)
      if (step->norm.bytes() > 0 && !kernels::optimizer::norm_is_finite(device_, step->norm))
        fail_norm(std::numeric_limits<double>::infinity(), at);
  }

  vulkan::Binding range(const vulkan::DeviceBuffer& buffer, std::size_t begin, std::size_t end) const {
    return {&buffer, begin * sizeof(T), (end - begin) * sizeof(T)};
  }

  const M& model_;
  const D& data_;
  TrainState<T>& state_;
  vulkan::Device& device_;
  vulkan::Timestamps timestamps_;
  std::vector<std::uint8_t> frozen_, decays_;  // one flag per slice; no decays_: all decay alike
  typename D::Storage storage_;
  vulkan::DeviceBuffer parameters_, buffers_, gradient_, status_, losses_;
  std::vector<vulkan::DeviceBuffer> optimizer_;
  DeviceTree tree_;
  DeviceTape tape_;
  std::map<Key, std::unique_ptr<Recorded>> steps_;
  std::vector<LossEntry> pending_;  // losses on the device that the host has not seen
  std::size_t slots_ = 0, loss_stride_ = 0;
  unsigned turn_ = 0;
  std::map<std::string, double> times_;
};

}  // namespace gradloom
