// Training and prediction where a run was asked to work: on the CPU, or on a Vulkan device for families that can.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "gradloom/base/rounding.h"
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
  std::unique_ptr<DeviceRunner<Model>> runner;
};

// A Trainer; when `device` is not null (only for families with a device version) a DeviceTrainer, or a Trainer with the
// gradients of the device.
template <class F>
class StageTrainer {
 public:
  using T = typename F::Scalar;
  using D = typename F::Data;

  StageTrainer(const Exec& ex, vulkan::Device* device, const typename F::Model& model, const D& data,
               TrainOptions options, TrainState<T>& state, vulkan::Timestamps timestamps = vulkan::Timestamps::off) {
    if constexpr (OnDevice<F>::available) {
      using Version = typename OnDevice<F>::Model;
      if (device) {
        parts_.model = std::make_unique<Version>(*device, model);
        if (optimizes_on_host(options))
          loop_ = std::make_unique<DeviceGradientTrainer<Version, D>>(ex, *parts_.model, data, std::move(options),
                                                                      state, timestamps);
        else
          loop_ = std::make_unique<DeviceTrainer<Version, D>>(ex, *parts_.model, data, std::move(options), state,
                                                              timestamps);
        return;
      }
    }
    loop_ = std::make_unique<Trainer<typename F::Model, D>>(ex, model, data, std::move(options), state);
  }

  EpochLoop* operator->() { return loop_.get(); }

 private:
  DeviceParts<F> parts_;
  std::unique_ptr<EpochLoop> loop_;
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
        result_.stride = padded(result_.width);
        result_.values = Buffer<T>(result_.rows * result_.stride);
        return;
      }
    }
    cpu_.emplace(ex, model, data);
  }

  const Predictions<T>& run(const ModelArrays<T>& arrays) {
    if constexpr (OnDevice<F>::available) {
      if (parts_.runner) {
        parts_.runner->upload(arrays.parameters, arrays.buffers);
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
