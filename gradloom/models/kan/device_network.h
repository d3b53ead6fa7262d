// A spline network on a Vulkan device: records the passes of Network, with the same arrays and the same bits.
#pragma once

#include "gradloom/kernels/spline/device.h"
#include "gradloom/models/device_model.h"
#include "gradloom/models/kan/network.h"

namespace gradloom::kan {

// Satisfies DeviceModel. Device and network are not owned. Dispatches per layer: one forward; two backward, for the
// parameters and for the inputs, as they are wanted; one more for the tree of a step with more than two leaves, and one
// in each direction for nodes that multiply.
template <class T>
class DeviceNetwork {
 public:
  using Scalar = T;

  // Throws unsuitable_device, naming what is too large, when a layer does not fit the device's limits, or when the
  // device lacks the scalar.
  DeviceNetwork(vulkan::Device& device, const Network<T>& network);

  vulkan::Device& device() const { return device_; }
  const Slices& parameters() const { return network_.parameters(); }
  const Slices& buffers() const { return network_.buffers(); }
  std::size_t input_width() const { return network_.input_width(); }
  std::size_t output_width() const { return network_.output_width(); }
  std::uint32_t output_mean_at() const { return buffer_at(network_.affine().output_mean); }
  std::uint32_t output_std_at() const { return buffer_at(network_.affine().output_std); }
  std::size_t layers() const { return network_.layers(); }
  const Network<T>& host() const { return network_; }

  // Throws unsuitable_device when a layer cannot run forward over such batches, device_memory when there is no room.
  DeviceTape make_tape(std::size_t batch, bool input_gradient) const;
  std::size_t leaf_samples() const { return network_.leaf_samples(); }
  // For batches of this size in steps of so many leaves. Throws as make_tape does.
  DeviceTree make_tree(std::size_t batch, std::size_t leaves) const;
  // Whether a batch behind so many leaves needs it.
  static bool makes_tree(std::size_t leaf, std::size_t batch) { return kernels::spline::makes_tree(leaf, batch); }
  // Throws unsuitable_device when a layer cannot run backward over such batches.
  void require_backward(std::size_t batch) const;
  // The same for the norm of the gradient.
  void require_norm(std::size_t batch) const;
  void record_forward(vulkan::Commands& commands, const DeviceArrays& arrays, const DeviceTape& tape, std::size_t batch,
                      vulkan::Binding x) const;
  void record_backward(vulkan::Commands& commands, const Step& step, const DeviceArrays& arrays, const DeviceTape& tape,
                       std::size_t batch, vulkan::Binding x, bool inputs, DeviceSink* sink) const;
  vulkan::Binding top(const DeviceTape& tape, std::size_t batch) const;
  vulkan::Binding top_gradient(const DeviceTape& tape, std::size_t batch) const;

 private:
  struct Range {
    std::size_t begin, end;
  };
  std::uint32_t buffer_at(std::size_t slice) const {
    return static_cast<std::uint32_t>(network_.buffers()[slice].offset);
  }
  Range layer_range(std::size_t layer) const;  // its weights and bias in the flat arrays
  kernels::spline::DeviceLeaves leaves_of(std::size_t layer, const Step& step, const DeviceArrays& arrays,
                                          std::size_t batch) const;
  kernels::spline::DevicePass pass(std::size_t layer, const DeviceArrays& arrays, const DeviceTape& tape,
                                   std::size_t batch, vulkan::Binding x) const;

  vulkan::Device& device_;
  const Network<T>& network_;
  std::vector<kernels::spline::DeviceLayer> layers_;
};

}  // namespace gradloom::kan
