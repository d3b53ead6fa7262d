// The updates of optimizer.h on a Vulkan device, with their bits where division and square root are correctly rounded;
// and clipping by norm. The constants of a step stand in the head of the batch (shader/step.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradloom/exec/vulkan/device.h"

namespace gradloom::kernels {

enum class DeviceUpdate : std::uint32_t { sgd, momentum, nesterov, adam };

struct DeviceUpdatePass {
  DeviceUpdate kind = DeviceUpdate::adam;
  std::size_t count = 0;                 // elements; a multiple of four
  vulkan::Binding parameters, gradient;  // the same range of each array
  vulkan::Binding first, second;         // of the state; any buffer where the kind has none
  vulkan::Binding samples, status;
  vulkan::Binding scale;  // one scalar: that of NormClip::scale(); any buffer without clipping
  bool clipped = false;
  bool decays = true;  // false: the step's weight decay is not for this range
};

// Records one dispatch; no barrier.
template <class T>
void record_update(vulkan::Device& device, vulkan::Commands& commands, const DeviceUpdatePass& pass,
                   const std::string& label);

// Elements [begin, end) of an array, at least one; begin is a multiple of 256 bytes.
struct NormRange {
  std::size_t begin = 0, end = 0;
};

// Neighbouring ranges that one binding can span.
std::vector<std::vector<NormRange>> bindable_ranges(const std::vector<NormRange>& ranges, std::size_t element_bytes,
                                                    std::uint64_t max_bytes);

// The scale of norm clipping, min(1, clip_norm / norm) over all ranges. Squares are summed as reduce.h says, ranges in
// order; the CPU adds ranges and takes the root in double, so the scale may differ in the last digits.
template <class T>
class NormClip {
 public:
  // Ranges of `values`, which is not owned, in order.
  NormClip(vulkan::Device& device, const vulkan::DeviceBuffer& values, const std::vector<NormRange>& ranges);
  // Records one dispatch for all ranges that one binding can span, with a barrier after each.
  void record(vulkan::Commands& commands, const vulkan::Binding& samples) const;
  vulkan::Binding scale() const;

 private:
  struct Part {
    vulkan::Binding values;
    std::uint32_t first_range = 0, first_sum = 0, sums = 0;
  };
  vulkan::Device& device_;
  std::vector<Part> parts_;
  std::size_t ranges_ = 0, sums_ = 0, groups_ = 0;
  vulkan::DeviceBuffer sums_buffer_, table_, scale_, done_;
};

}  // namespace gradloom::kernels
