// DevicePredictor: a Predictor whose forward passes run on a Vulkan device.
#pragma once

#include "gradloom/models/device_runner.h"
#include "gradloom/train/predict.h"

namespace gradloom {

// M is a DeviceModel, D a dataset of RowBatch. The device and the data outlive the predictor.
template <class M, class D>
requires DeviceModel<M>
class DevicePredictor final : public AnyPredictor<typename M::Scalar> {
 public:
  using T = typename M::Scalar;

  template <class Host>
  DevicePredictor(vulkan::Device& device, const Host& network, const D& data)
      : data_(data), model_(device, network), runner_(model_), result_(data.size(), network.output_width()) {}

  const Predictions<T>& run(const ModelArrays<T>& arrays) override {
    runner_.upload(arrays.parameters, arrays.buffers);
    const RowBatch<T> all = data_.all();
    for (std::size_t first = 0; first < all.size; first += kPredictedAtOnce) {
      RowBatch<T> part;
      part.size = std::min(kPredictedAtOnce, all.size - first);
      part.x = View<const T, 2>(all.x.row(first), {part.size, all.x.extent(1)});
      runner_.forward(part, result_.rows_from(first, part.size));
    }
    return result_;
  }

 private:
  const D& data_;
  M model_;
  DeviceRunner<M> runner_;
  Predictions<T> result_;
};

}  // namespace gradloom
