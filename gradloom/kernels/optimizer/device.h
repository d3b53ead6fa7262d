// The updates of optimizer.h on a Vulkan device, with their bits where division and square root are correctly rounded,
// and clipping by norm. The constants of a step stand in the head of the batch (shader/step.h).
#pragma once

#include <cstdint>
#include <string>

#include "gradloom/exec/vulkan/device.h"

namespace gradloom::kernels {

enum class DeviceUpdate : std::uint32_t { sgd, momentum, nesterov, adam };

struct DeviceUpdatePass {
  DeviceUpdate kind = DeviceUpdate::adam;
  std::size_t count = 0;                 // elements; a multiple of four
  vulkan::Binding parameters, gradient;  // the same range of each array
  vulkan::Binding first, second;         // of the state; any buffer where the kind has none
  vulkan::Binding samples, status;
  vulkan::Binding norm;  // that of make_norm; any buffer without clipping
  bool clipped = false;
  std::size_t decay_begin = 0, decay_end = 0;  // elements that the step's weight decay is for
};

// Records one dispatch; no barrier.
template <class T>
void record_update(vulkan::Device& device, vulkan::Commands& commands, const DeviceUpdatePass& pass,
                   const std::string& label);

// Room for the norm of a gradient: the kernels that compute the gradient add up its squares, each of `shares` groups
// its own, and the last to end all of them, in order. The CPU has another order and adds in double, so the norm may
// differ in the last digits.
template <class T>
vulkan::DeviceBuffer make_norm(vulkan::Device& device, std::size_t shares);

}  // namespace gradloom::kernels
