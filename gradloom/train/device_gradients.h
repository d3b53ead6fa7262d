// DeviceGradients: losses and gradients from a Vulkan device, for optimizers that run on the host; and the trainer that
// uses them.
//
// An evaluation is one submit: parameters and batch go in, the loss and a complete gradient come out. That is
// compressed on the device if asked, with what was not sent kept there for the next time (kernels/compress); one that
// more micro-batches are added to stays there. Losses are summed in the order of the device.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/compress/device.h"
#include "gradloom/kernels/shader/step.h"
#include "gradloom/train/device_loss.h"
#include "gradloom/train/trainer.h"

namespace gradloom {

// M is a DeviceModel; it is not owned.
template <class M>
requires DeviceModel<M>
class DeviceGradients {
 public:
  using Scalar = typename M::Scalar;
  using T = Scalar;
  using Batch = RowBatch<T>;

  // A recorded evaluation with the host memory that it copies from and to.
  struct Recorded {
    vulkan::DeviceBuffer up, down, samples;
    BatchLayout layout;
    std::uint64_t parameters_at = 0, losses_at = 0;  // bytes of up and down
    vulkan::Commands commands;
    Recorded(vulkan::Device& device, vulkan::Timestamps timestamps) : commands(device, timestamps) {}
  };
  // What lives on the device. Evaluations are recorded by batch size, mode, whether there is a tree, and whether the
  // gradient is complete.
  struct Tape {
    DeviceTape device;
    DeviceTree tree;
    vulkan::DeviceBuffer parameters, buffers, gradient, residual, packed, losses, status;
    std::map<std::tuple<std::size_t, GradientMode, bool, GradientIs>, std::unique_ptr<Recorded>> recorded;
    std::map<std::string, double> times;  // milliseconds by kernel
  };

  // The state is that of the trainer: its buffers and its residual are copied to the device by make_tape. Throws
  // unsupported for L-BFGS with compression.
  DeviceGradients(const M& model, const TrainOptions& options, const TrainState<T>& state,
                  vulkan::Timestamps timestamps = vulkan::Timestamps::off)
      : model_(model),
        device_(model.device()),
        compression_(options.compression),
        state_(state),
        timestamps_(timestamps) {
    if (options.optimizer.kind == OptimizerKind::lbfgs && compression_.kind != kernels::compress::Compression::none)
      throw Exception(ErrorCode::unsupported,
                      "optimizer.kind = \"lbfgs\" needs exact gradients; set optimizer.compress = \"none\"");
  }

  const Slices& parameters() const { return model_.parameters(); }
  const Slices& buffers() const { return model_.buffers(); }
  std::size_t output_width() const { return model_.output_width(); }

  std::size_t leaf_samples() const { return model_.leaf_samples(); }

  // For batches of at most so many samples, in steps of at most so many leaves.
  Tape make_tape(std::size_t batch, std::size_t leaves) const {
    const std::size_t size = parameters().flat_size();
    const auto make = [&](std::size_t bytes) { return device_.make_buffer(bytes, vulkan::BufferUse::device); };
    Tape tape;
    tape.parameters = make(size * sizeof(T));
    tape.buffers = make(buffers().flat_size() * sizeof(T));
    tape.gradient = make(size * sizeof(T));
    tape.losses = make(2 * kernels::loss::device_groups(batch) * sizeof(T));
    tape.status = make(kMemoryAlignment);
    model_.require_backward(batch);
    tape.device = model_.make_tape(batch, false);
    tape.tree = model_.make_tree(batch, leaves);
    if (compression_.kind != kernels::compress::Compression::none) {
      tape.packed = make(kernels::compress::compressed_bytes<T>(compression_, size));
      device_.require_range(tape.gradient.bytes(), "the gradient, to be compressed,");
    }
    if (keeps_residual()) tape.residual = make(size * sizeof(T));
    device_.zero(tape.gradient);
    device_.zero(tape.status);
    device_.write(tape.buffers, 0, std::as_bytes(state_.buffers.span()));
    if (keeps_residual() && state_.residual.size() == size)
      device_.write(tape.residual, 0, std::as_bytes(state_.residual.span()));
    else if (keeps_residual())
      device_.zero(tape.residual);
    return tape;
  }

  // The loss of a batch at these parameters; fills the gradient if the step completes it, unless the loss is not
  // finite. Throws invalid_input for a batch that does not fit, device_lost.
  double evaluate(const Step& step, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
                  const LossOptions& loss, std::span<T> gradient) const {
    Recorded& r = recorded(step, batch, loss, tape);
    const double normaliser = kernels::loss::fill_head(r.up.host(), loss, wanted_of(batch), output_width(), 0);
    pack_batch(batch, r.layout, r.up.host());
    std::memcpy(r.up.host() + r.parameters_at, arrays.parameters.data(), tape.parameters.bytes());
    kernels::set_step_leaf(r.up.host(), step.leaf);
    r.commands.submit();
    r.commands.wait();
    for (const auto& time : r.commands.times()) tape.times[time.label] += time.microseconds * 1e-3;
    const double value =
        normaliser * kernels::loss::sum_pairs(reinterpret_cast<const T*>(r.down.host() + r.losses_at), batch.size);
    if (!std::isfinite(value) || step.gradient_is == GradientIs::partial) return value;
    kernels::compress::decompress<T>(
        compression_, {r.down.host(), kernels::compress::compressed_bytes<T>(compression_, gradient.size())}, gradient);
    return value;
  }

  // After a change of parameters and buffers from outside: nothing waits to be sent any more.
  void restart(Tape& tape) const {
    device_.write(tape.buffers, 0, std::as_bytes(state_.buffers.span()));
    if (keeps_residual()) device_.zero(tape.residual);
  }

  // Copies what waits to be sent; `residual` is as long as the parameters. Nothing without compression by top_k.
  void read_residual(const Tape& tape, std::span<T> residual) const {
    if (keeps_residual()) device_.read(tape.residual, 0, std::as_writable_bytes(residual));
  }

  // Copy what is summed of a step.
  void write_sums(const TrainState<T>& state, Tape& tape) const {
    device_.write(tape.gradient, 0, std::as_bytes(state.gradient.span()));
    write_levels<T>(device_, tape.tree, state.levels.span(), state.leaves, state.gradient.size());
  }
  void read_sums(const Tape& tape, TrainState<T>& state) const {
    device_.read(tape.gradient, 0, std::as_writable_bytes(state.gradient.span()));
    read_levels(device_, tape.tree, state.levels, state.leaves, state.gradient.size());
  }

  bool keeps_residual() const { return compression_.kind == kernels::compress::Compression::top_k; }

 private:
  Recorded& recorded(const Step& step, const Batch& batch, const LossOptions& loss, Tape& tape) const {
    std::unique_ptr<Recorded>& found =
        tape.recorded[{batch.size, step.gradient, model_.makes_tree(step.leaf, batch.size), step.gradient_is}];
    if (found) return *found;
    if (batch.size == 0 || batch.size > tape.device.batch || batch.x.extent(1) != model_.input_width())
      throw Exception(
          ErrorCode::invalid_input,
          fmt::format("a batch of {} samples with {} features does not fit a network of {} inputs, made for "
                      "batches of 1 to {}",
                      batch.size, batch.x.extent(1), model_.input_width(), tape.device.batch));
    auto made = std::make_unique<Recorded>(device_, timestamps_);
    const std::uint64_t gradient_bytes = tape.gradient.bytes();
    made->layout = batch_layout(batch);
    device_.require_range(made->layout.bytes, fmt::format("a batch of {} samples", batch.size));
    made->parameters_at = made->layout.bytes;
    made->losses_at = (gradient_bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
    made->up = device_.make_buffer(made->parameters_at + gradient_bytes, vulkan::BufferUse::upload);
    made->samples = device_.make_buffer(made->layout.bytes, vulkan::BufferUse::device);
    made->down = device_.make_buffer(made->losses_at + tape.losses.bytes(), vulkan::BufferUse::download);
    record(step, batch, loss, tape, *made);
    found = std::move(made);
    return *found;
  }

  void record(const Step& step, const Batch& batch, const LossOptions& loss, Tape& tape, Recorded& to) const {
    vulkan::Commands& commands = to.commands;
    const std::size_t gradient_bytes = tape.gradient.bytes();
    commands.copy(to.up, 0, to.samples, 0, to.layout.bytes);
    commands.copy(to.up, to.parameters_at, tape.parameters, 0, gradient_bytes);
    commands.barrier();
    const DeviceArrays arrays{&tape.parameters, &tape.buffers, &tape.gradient, &tape.tree, &to.samples};
    const vulkan::Binding x{&to.samples, to.layout.x, batch.size * model_.input_width() * sizeof(T)};
    model_.record_forward(commands, arrays, tape.device, batch.size, x);
    kernels::loss::DevicePass pass =
        loss_pass(model_, tape.device, batch.size, loss.kind, to.layout, to.samples, tape.buffers);
    pass.losses = whole(tape.losses);
    pass.status = whole(tape.status);
    kernels::loss::record<T>(device_, commands, pass);
    commands.barrier();
    model_.record_backward(commands, step, arrays, tape.device, batch.size, x, false, nullptr);
    const vulkan::DeviceBuffer* result = &tape.gradient;
    if (step.gradient_is == GradientIs::complete && compression_.kind != kernels::compress::Compression::none) {
      kernels::compress::DeviceCompressionPass compress;
      compress.options = compression_;
      compress.count = parameters().flat_size();
      compress.gradient = whole(tape.gradient);
      compress.packed = whole(tape.packed);
      if (keeps_residual()) compress.residual = whole(tape.residual);
      kernels::compress::record_compress<T>(device_, commands, compress);
      commands.barrier();
      result = &tape.packed;
    }
    if (step.gradient_is == GradientIs::complete) commands.copy(*result, 0, to.down, 0, result->bytes());
    commands.copy(tape.losses, 0, to.down, to.losses_at, 2 * kernels::loss::device_groups(batch.size) * sizeof(T));
    commands.finish();
  }

  const M& model_;
  vulkan::Device& device_;
  kernels::compress::CompressionOptions compression_;
  const TrainState<T>& state_;
  vulkan::Timestamps timestamps_;
};

// Gradients of the device, parameters updated on the host. What a model adds behind the sums over samples (a penalty,
// edges that stay zero) is computed on the host. Model and data belong to the caller and outlive the trainer.
template <class M, class D>
requires DeviceModel<M>
class DeviceGradientTrainer final : public HostTrainer<typename M::Scalar> {
 public:
  using T = typename M::Scalar;

  // Fails as Trainer and DeviceGradients do.
  DeviceGradientTrainer(const Exec& ex, const M& model, const D& data, TrainOptions options, TrainState<T>& state,
                        vulkan::Timestamps timestamps = vulkan::Timestamps::off)
      : HostTrainer<T>(ex, model.parameters(), model.buffers(), data.size(), std::move(options), state),
        host_(model.host()),
        data_(data),
        gradients_(model, this->options(), state, timestamps),
        tape_(gradients_.make_tape(this->largest_piece(), this->leaves_of_step(model.leaf_samples()))),
        storage_(data.make_storage(this->largest_piece() < data.size() ? this->largest_piece() : 0)) {
    this->check_pieces(model.leaf_samples());
    if (completes_gradient(host_)) host_tape_.emplace(host_.make_tape(ex, {.batch = 1}));
    if (!is_accumulating(this->options(), this->samples(), state.position)) return;
    this->check_leaves(state.leaves, model.leaf_samples());
    gradients_.write_sums(state, tape_);
  }

  void reset_optimizer() override {
    HostTrainer<T>::reset_optimizer();
    gradients_.restart(tape_);
  }
  void sync() override {
    TrainState<T>& state = this->state();
    if (is_accumulating(this->options(), this->samples(), state.position)) gradients_.read_sums(tape_, state);
    if (!gradients_.keeps_residual()) return;
    if (state.residual.size() != state.parameters.size()) state.residual = Buffer<T>(state.parameters.size());
    gradients_.read_residual(tape_, state.residual.span());
  }
  std::map<std::string, double> kernel_times() const override { return tape_.times; }
  const typename DeviceGradients<M>::Tape& tape() const { return tape_; }
  const DeviceGradients<M>& gradients() const { return gradients_; }

 private:
  void load(const Piece& piece) override {
    const ProfileScope scope(this->exec(), this->phases_.data);
    const auto rows = this->rows(piece);
    batch_ = this->one_piece() ? data_.all() : data_.gather(rows, storage_);
  }
  double evaluate(const Step& step, const LossOptions& loss, std::span<const T> parameters, std::span<T> gradient,
                  GradientSink*) override {
    const ProfileScope scope(this->exec(), this->phases_.backward);
    check_loss_batch<T>(loss, batch_, gradients_.output_width());
    double value = gradients_.evaluate(step, this->arrays(parameters), batch_, tape_, loss, gradient);
    if constexpr (HasPenalty<Host>)
      if (host_tape_ && std::isfinite(value) && step.gradient_is == GradientIs::complete)
        value += host_.complete_gradient(this->exec(), step, parameters, *host_tape_, gradient);
    return value;
  }
  bool can_fuse() const override { return false; }
  std::size_t leaves() const override { return divide_up(batch_.size, gradients_.leaf_samples()); }

  using Host = std::remove_cvref_t<decltype(std::declval<const M&>().host())>;

  const Host& host_;
  std::optional<typename Host::Tape> host_tape_;  // for what the host adds
  const D& data_;
  DeviceGradients<M> gradients_;
  typename DeviceGradients<M>::Tape tape_;
  typename D::Storage storage_;
  RowBatch<T> batch_;
};

}  // namespace gradloom
