// DeviceGradients: losses and gradients from a Vulkan device, for optimizers that run on the host. A Trainer takes it
// in the place of a model.
//
// An evaluation is one submit: parameters and batch go in, the loss and the gradient come out. A complete gradient is
// compressed on the device if asked, with what was not sent kept there for the next time (kernels/compress); one that
// more micro-batches are added to travels whole. Losses are summed in the order of the device.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "gradloom/kernels/compress/device.h"
#include "gradloom/train/device_loss.h"
#include "gradloom/train/trainer.h"

namespace gradloom {

// M is a DeviceModel; it is not owned. Satisfies EvaluatesLoss.
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
    std::uint64_t parameters_at = 0, gradient_at = 0, losses_at = 0;  // bytes of up, up and down
    vulkan::Commands commands;
    Recorded(vulkan::Device& device, vulkan::Timestamps timestamps) : commands(device, timestamps) {}
  };
  // What lives on the device. Evaluations are recorded by batch size, mode and whether the gradient is complete.
  struct Tape {
    DeviceTape device;
    vulkan::DeviceBuffer parameters, buffers, gradient, residual, packed, losses, status;
    std::map<std::tuple<std::size_t, GradientMode, GradientIs>, std::unique_ptr<Recorded>> recorded;
    std::map<std::string, double> times;  // milliseconds by kernel
  };

  // The state is that of the trainer: its buffers and its residual are copied to the device by make_tape. Throws
  // unsupported for L-BFGS with compression.
  DeviceGradients(const M& model, const TrainOptions& options, const TrainState<T>& state,
                  vulkan::Timestamps timestamps = vulkan::Timestamps::off);

  const Slices& parameters() const { return model_.parameters(); }
  const Slices& buffers() const { return model_.buffers(); }
  std::size_t output_width() const { return model_.output_width(); }

  Tape make_tape(const Exec& ex, const TapeLimits& limits) const;
  // The loss of a batch at these parameters; fills or adds to the gradient, unless the loss is not finite. Throws
  // invalid_input for a batch that does not fit, device_lost.
  double evaluate(const Step& step, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
                  const LossOptions& loss, std::span<T> gradient) const;
  // After a change of parameters and buffers from outside: nothing waits to be sent any more.
  void restart(Tape& tape) const;
  // Copies what waits to be sent; `residual` is as long as the parameters. Nothing without compression by top_k.
  void read_residual(const Tape& tape, std::span<T> residual) const;
  bool keeps_residual() const { return compression_.kind == kernels::Compression::top_k; }

 private:
  Recorded& recorded(const Step& step, const Batch& batch, const LossOptions& loss, Tape& tape) const;
  void record(const Step& step, const Batch& batch, const LossOptions& loss, Tape& tape, Recorded& to) const;

  const M& model_;
  vulkan::Device& device_;
  kernels::CompressionOptions compression_;
  const TrainState<T>& state_;
  vulkan::Timestamps timestamps_;
};

}  // namespace gradloom

#include "gradloom/train/device_gradients.inc"
