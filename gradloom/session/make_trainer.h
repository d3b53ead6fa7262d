// The trainer of a stage, where it was asked to run: on the CPU, or on a Vulkan device for families that have a version
// for it. Only the files of families include it.
#pragma once

#include <memory>
#include <type_traits>

#include "gradloom/train/device_gradients.h"
#include "gradloom/train/device_trainer.h"
#include "gradloom/train/trainer.h"

namespace gradloom {

template <class F>
inline constexpr bool kRunsOnDevices = !std::is_void_v<typename F::DeviceModel>;

// The trainer of a stage, on the device unless that is null. Model, data and state outlive it.
template <class F>
std::shared_ptr<EpochLoop> make_trainer(const Exec& ex, vulkan::Device* device, const typename F::Model& model,
                                        const typename F::Data& data, TrainOptions options,
                                        TrainState<typename F::Scalar>& state,
                                        vulkan::Timestamps timestamps = vulkan::Timestamps::off) {
  using D = typename F::Data;
  if constexpr (kRunsOnDevices<F>) {
    using M = typename F::DeviceModel;
    const auto on_device = [&]<class Loop>(std::type_identity<Loop>) -> std::shared_ptr<EpochLoop> {
      struct Owner {
        M model;
        Loop loop;
        Owner(const Exec& ex, vulkan::Device& on, const typename F::Model& of, const D& data, TrainOptions options,
              TrainState<typename F::Scalar>& state, vulkan::Timestamps timestamps)
            : model(on, of), loop(ex, model, data, std::move(options), state, timestamps) {}
      };
      const auto owner = std::make_shared<Owner>(ex, *device, model, data, std::move(options), state, timestamps);
      return {owner, &owner->loop};
    };
    const bool completed = options.place == OptimizerPlace::automatic && completes_gradient(model);
    if (device && (completed || optimizes_on_host(options)))
      return on_device(std::type_identity<DeviceGradientTrainer<M, D>>());
    if (device) return on_device(std::type_identity<DeviceTrainer<M, D>>());
  }
  return std::make_shared<Trainer<typename F::Model, D>>(ex, model, data, std::move(options), state);
}

}  // namespace gradloom
