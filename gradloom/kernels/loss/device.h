// Losses on a Vulkan device, and the scale of a network's output that goes with them.
//
// v (B, OutP) is what the last layer gave; y = mean + std * v. Terms and gradients have the bits of reference.h. The
// sum of a step is kept with twice the digits of the scalar, as `device_groups` pairs (sum, remainder): their order is
// fixed, but not that of the CPU, so a loss may differ from it in the last digits of a double. A sum that is not finite
// sets status[0], after which no update changes anything.
#pragma once

#include "gradloom/exec/vulkan/device.h"
#include "gradloom/kernels/loss/loss.h"

namespace gradloom::kernels::loss {

enum class DeviceResult : std::uint32_t {
#define GRADLOOM_LOSS_RESULT(number, name) name = number,
#include "gradloom/kernels/loss/kinds.inc"
#undef GRADLOOM_LOSS_RESULT
};

// Samples that one pair of a loss stands for.
inline constexpr std::size_t kDeviceGroup = 64;
inline std::size_t device_groups(std::size_t batch) { return divide_up(batch, kDeviceGroup); }

struct DevicePass {
  DeviceResult result_kind = DeviceResult::gradient;
  Kind kind = Kind::mse;
  std::size_t batch = 0, out = 0;
  std::uint32_t mean_at = 0, std_at = 0;  // elements of the model's buffers
  // Bytes in the batch; 0: not there. The batch starts with the head of step.h.
  std::uint64_t target = 0, label = 0, weight = 0, mask = 0;
  vulkan::Binding v, buffers, samples;
  vulkan::Binding result;         // (B, result_stride): dl_dv, or y
  std::size_t result_stride = 0;  // at least Out; what lies beyond is zero (untouched for y)
  vulkan::Binding losses;         // pairs; the head of the batch says where its device_groups(B) begin
  vulkan::Binding status;         // one whole number
};

// Fills what the loss reads in the head of a batch: `slot` is its first pair. Returns what its sum of terms is to be
// multiplied by.
template <class T>
double fill_head(std::byte* head, const Options& options, const Wanted<T>& wanted, std::size_t out, std::size_t slot);

// Records one dispatch; no barrier.
template <class T>
void record(vulkan::Device& device, vulkan::Commands& commands, const DevicePass& pass);

// The sum of terms from its pairs.
template <class T>
double sum_pairs(const T* pairs, std::size_t batch);

}  // namespace gradloom::kernels::loss
