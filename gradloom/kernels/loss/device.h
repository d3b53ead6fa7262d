// Losses on a Vulkan device, and the scale of a network's output that goes with them.
//
// v (B, OutP) is what the last layer gave; y = mean + std * v. Terms and gradients have the bits of train/loss.h. The
// sum of a step is kept with twice the digits of the scalar, as `loss_groups` pairs (sum, remainder): their order is
// fixed, but not that of the CPU, so a loss may differ from it in the last digits of a double. A sum that is not finite
// sets status[0], after which no update changes anything.
#pragma once

#include "gradloom/base/rounding.h"
#include "gradloom/exec/vulkan/device.h"

namespace gradloom::kernels {

enum class DeviceLoss : std::uint32_t {
  mse,
  mae,
  huber,
  cross_entropy,
  binary_cross_entropy,
  predict,  // no loss: result is y
  given,    // no loss: the targets are dl_dy
};

// Samples that one pair of a loss stands for.
inline constexpr std::size_t kLossGroup = 64;
inline std::size_t loss_groups(std::size_t batch) { return divide_up(batch, kLossGroup); }

struct DeviceLossPass {
  DeviceLoss kind = DeviceLoss::mse;
  std::size_t batch = 0, out = 0;
  std::uint32_t mean_at = 0, std_at = 0;  // elements of the model's buffers
  // Bytes in the batch; 0: not there. The batch starts with the head of step.h.
  std::uint64_t target = 0, label = 0, weight = 0, mask = 0;
  vulkan::Binding v, buffers, samples;
  vulkan::Binding result;         // (B, result_stride): dl_dv, or y for predict
  std::size_t result_stride = 0;  // at least Out; what lies beyond is zero (untouched for predict)
  vulkan::Binding losses;         // pairs; the head of the batch says where its loss_groups(B) begin
  vulkan::Binding status;         // one whole number
};

// Records one dispatch; no barrier.
template <class T>
void record_loss(vulkan::Device& device, vulkan::Commands& commands, const DeviceLossPass& pass);

}  // namespace gradloom::kernels
