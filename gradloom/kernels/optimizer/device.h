// The updates of optimizer.h on a Vulkan device, with their bits where division and square root are correctly rounded;
// and clipping by norm. The constants of a step stand in the head of the batch (shader/step.h).
#pragma once

#include <vector>

#include "gradloom/exec/vulkan/device.h"

namespace gradloom::kernels {

enum class DeviceUpdate : std::uint32_t { sgd, momentum, nesterov, adam };

struct DeviceUpdatePass {
  DeviceUpdate kind = DeviceUpdate::adam;
  std::size_t count = 0;                 // elements
  vulkan::Binding parameters, gradient;  // the same range of each array
  vulkan::Binding first, second;         // of the state; any buffer where the kind has none
  vulkan::Binding samples, status;
  vulkan::Binding scale;  // one scalar: that of clip_scale; any buffer without clipping
  bool clipped = false;
};

// Records one dispatch; no barrier.
template <class T>
void record_update(vulkan::Device& device, vulkan::Commands& commands, const DeviceUpdatePass& pass,
                   const std::string& label);

// Elements [first, first + count) of one binding.
struct NormRange {
  vulkan::Binding values;
  std::size_t first = 0, count = 0;
};

// The scale of norm clipping, min(1, clip_norm / norm) over all ranges. Squares are summed as reduce.h says, ranges in
// order; the CPU adds ranges and takes the root in double, so the scale may differ in the last digits.
template <class T>
class NormClip {
 public:
  // Memory for ranges of these sizes.
  NormClip(vulkan::Device& device, std::vector<NormRange> ranges);
  // Records a dispatch per range and one more, with the barriers between and after them.
  void record(vulkan::Commands& commands, const vulkan::Binding& samples) const;
  vulkan::Binding scale() const;

 private:
  vulkan::Device& device_;
  std::vector<NormRange> ranges_;
  std::size_t sums_ = 0;
  vulkan::DeviceBuffer sums_buffer_, table_, scale_;
};

}  // namespace gradloom::kernels
