// Training and prediction where a run was asked to work: on the CPU, or on a Vulkan device for families that can.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "gradloom/models/kan/device_network.h"
#include "gradloom/train/device_gradients.h"
#include "gradloom/train/device_trainer.h"
#include "gradloom/train/predict.h"
#include "gradloom/train/trainer.h"

namespace gradloom::app {

template <class T>
class KanFamily;

// The device version of a family's model, where there is one.
template <class F>
struct OnDevice {
  static constexpr bool available = false;
};
template <class T>
struct OnDevice<KanFamily<T>> {
  static constexpr bool available = true;
  using Model = kan::DeviceNetwork<T>;
};

// What a StageTrainer or StagePredictor holds besides the model of the CPU.
template <class F, bool = OnDevice<F>::available>
struct DeviceParts {};
template <class F>
struct DeviceParts<F, true> {
  using Model = typename OnDevice<F>::Model;
  std::unique_ptr<Model> model;
  std::unique_ptr<DeviceTrainer<Model, typename F::Data>> trainer;
  std::unique_ptr<DeviceGradients<Model>> gradients;  // for the optimizer here
  std::unique_ptr<Trainer<DeviceGradients<Model>, typename F::Data>> host_trainer;
  std::unique_ptr<DeviceRunner<Model>> runner;
};

// Whether gradients of a device travel to an optimizer on the host. Throws invalid_input, unsupported.
inline bool optimizes_on_host(const TrainOptions& options) {
  if (options.place == OptimizerPlace::automatic) return options.optimizer.kind == OptimizerKind::lbfgs;
  return options.place == OptimizerPlace::host;
}

// A Trainer; when `device` is not null (only for families with a device version) a DeviceTrainer, or a Trainer with the
// gradients of the device.
template <class F>
class StageTrainer {
 public:
  using T = typename F::Scalar;
  using M = typename F::Model;
  using D = typename F::Data;

  StageTrainer(const Exec& ex, vulkan::Device* device, const M& model, const D& data, TrainOptions options,
               TrainState<T>& state, vulkan::Timestamps timestamps = vulkan::Timestamps::off)
      : state_(state) {
    // What was left over by compression belongs to gradients that travel; nobody else would ever add it.
    if (!device || !optimizes_on_host(options)) state.residual = {};
    if constexpr (OnDevice<F>::available) {
      using Version = typename OnDevice<F>::Model;
      if (device) {
        parts_.model = std::make_unique<Version>(*device, model);
        if (!optimizes_on_host(options)) {
          parts_.trainer = std::make_unique<DeviceTrainer<Version, D>>(ex, *parts_.model, data, std::move(options),
                                                                       state, timestamps);
          return;
        }
        parts_.gradients = std::make_unique<DeviceGradients<Version>>(*parts_.model, options, state, timestamps);
        parts_.host_trainer = std::make_unique<Trainer<DeviceGradients<Version>, D>>(ex, *parts_.gradients, data,
                                                                                     std::move(options), state);
        return;
      }
    }
    cpu_.emplace(ex, model, data, std::move(options), state);
  }

  StageEnd run(const TrainHooks& hooks) {
    return on_trainer([&](auto& trainer) { return trainer.run(hooks); });
  }
  bool step() {
    return on_trainer([](auto& trainer) { return trainer.step(); });
  }
  void reset_optimizer() {
    on_trainer([](auto& trainer) { trainer.reset_optimizer(); });
  }
  // Brings the state up to date before somebody reads it between steps or at the end; nothing to do on the CPU.
  void sync() {
    if constexpr (OnDevice<F>::available) {
      if (parts_.trainer) parts_.trainer->sync();
      if (!parts_.host_trainer || !parts_.gradients->keeps_residual()) return;
      if (state_.residual.size() != state_.parameters.size()) state_.residual = Buffer<T>(state_.parameters.size());
      parts_.gradients->read_residual(parts_.host_trainer->tape(), state_.residual.span());
    }
  }
  // Milliseconds by kernel, on a device with timestamps.
  std::map<std::string, double> kernel_times() const {
    if constexpr (OnDevice<F>::available) {
      if (parts_.trainer) return parts_.trainer->kernel_times();
      if (parts_.host_trainer) return parts_.host_trainer->tape().times;
    }
    return {};
  }

 private:
  template <class Call>
  auto on_trainer(Call&& call) {
    if constexpr (OnDevice<F>::available) {
      if (parts_.trainer) return call(*parts_.trainer);
      if (parts_.host_trainer) return call(*parts_.host_trainer);
    }
    return call(*cpu_);
  }

  TrainState<T>& state_;
  DeviceParts<F> parts_;
  std::optional<Trainer<M, D>> cpu_;
};

// A Predictor, on the device when there is one.
template <class F>
class StagePredictor {
 public:
  using T = typename F::Scalar;
  using M = typename F::Model;
  using D = typename F::Data;

  StagePredictor(const Exec& ex, vulkan::Device* device, const M& model, const D& data) : data_(data) {
    if constexpr (OnDevice<F>::available) {
      if (device) {
        parts_.model = std::make_unique<typename OnDevice<F>::Model>(*device, model);
        parts_.runner = std::make_unique<DeviceRunner<typename OnDevice<F>::Model>>(*parts_.model);
        result_.rows = data.size();
        result_.width = model.output_width();
        result_.stride = (result_.width + 15) / 16 * 16;
        result_.values = Buffer<T>(result_.rows * result_.stride);
        return;
      }
    }
    cpu_.emplace(ex, model, data);
  }

  const Predictions<T>& run(const ModelArrays<T>& arrays) {
    if constexpr (OnDevice<F>::available) {
      if (parts_.runner) {
        parts_.runner->upload(arrays.parameters.host(), arrays.buffers.host());
        const auto all = data_.all();
        for (std::size_t first = 0; first < all.size; first += kBatch) {
          RowBatch<T> part;
          part.size = std::min(kBatch, all.size - first);
          part.x = View<const T, 2>(all.x.row(first), {part.size, all.x.extent(1)});
          parts_.runner->forward(
              part, {result_.values.data() + first * result_.stride, {part.size, result_.width}, {result_.stride, 1}});
        }
        return result_;
      }
    }
    return cpu_->run(arrays);
  }

 private:
  static constexpr std::size_t kBatch = Predictor<M, D>::kBatch;
  const D& data_;
  DeviceParts<F> parts_;
  std::optional<Predictor<M, D>> cpu_;
  Predictions<T> result_;
};

}  // namespace gradloom::app
