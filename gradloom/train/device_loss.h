// What trainers on a device share: the loss of a batch there, and how it is read.
#pragma once

#include <cmath>
#include <cstring>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/loss/device.h"
#include "gradloom/kernels/shader/step.h"
#include "gradloom/models/device_model.h"
#include "gradloom/train/loss.h"

namespace gradloom {

inline kernels::DeviceLoss device_loss(LossKind kind) {
  switch (kind) {
    case LossKind::mse:
      return kernels::DeviceLoss::mse;
    case LossKind::mae:
      return kernels::DeviceLoss::mae;
    case LossKind::huber:
      return kernels::DeviceLoss::huber;
    case LossKind::cross_entropy:
      return kernels::DeviceLoss::cross_entropy;
    case LossKind::binary_cross_entropy:
      break;
  }
  return kernels::DeviceLoss::binary_cross_entropy;
}

// The factor of a batch's sum of terms (loss.h), without the scale.
template <class T>
double loss_normaliser(const LossOptions& loss, const RowBatch<T>& batch, std::size_t out) {
  if (loss.reduction == Reduction::sum) return 1.0;
  const std::size_t terms = loss.kind == LossKind::cross_entropy ? 1 : out;
  const std::size_t samples = loss.samples == 0 ? batch.size : loss.samples;
  double total = static_cast<double>(samples) * static_cast<double>(terms);
  if (!batch.weight.empty() || !batch.mask.empty()) {
    total = 0.0;
    for (std::size_t s = 0; s < batch.size; ++s)
      for (std::size_t j = 0; j < terms; ++j) {
        T w = batch.weight.empty() ? T(1) : batch.weight[s];
        if (!batch.mask.empty()) w *= batch.mask(s, j);
        total += static_cast<double>(w);
      }
    if (samples != batch.size) total *= static_cast<double>(samples) / static_cast<double>(batch.size);
  }
  return total > 0 ? 1.0 / total : 0.0;
}

// One scalar of the head of a batch.
template <class T>
void set_step_scalar(std::byte* head, kernels::StepScalar which, T value) {
  std::memcpy(head + kernels::kStepScalarsAt + static_cast<std::size_t>(which) * sizeof(T), &value, sizeof(T));
}

// Fills what the loss reads in the head of a batch: `slot` is its first pair. Returns what its sum of terms is to be
// multiplied by.
template <class T>
double fill_loss_head(std::byte* head, const LossOptions& loss, const RowBatch<T>& batch, std::size_t out,
                      std::size_t slot) {
  const double normaliser = loss_normaliser(loss, batch, out);
  const auto first = static_cast<std::uint32_t>(slot);
  std::memcpy(head, &first, sizeof(first));
  set_step_scalar(head, kernels::StepScalar::loss_factor, static_cast<T>(loss.scale * normaliser));
  set_step_scalar(head, kernels::StepScalar::huber_delta, static_cast<T>(loss.huber_delta));
  return normaliser * loss.scale;
}

// The sum of terms from its pairs.
template <class T>
double loss_sum(const T* pairs, std::size_t batch) {
  double sum = 0.0;
  for (std::size_t g = 0; g < kernels::loss_groups(batch); ++g)
    sum += static_cast<double>(pairs[2 * g]) + static_cast<double>(pairs[2 * g + 1]);
  return sum;
}

// The pass that turns the model's output on the tape into dl_d(output) there; losses and status are to be added.
template <class M>
kernels::DeviceLossPass loss_pass(const M& model, const DeviceTape& tape, std::size_t batch, LossKind kind,
                                  const BatchLayout& layout, const vulkan::DeviceBuffer& samples,
                                  const vulkan::DeviceBuffer& buffers) {
  kernels::DeviceLossPass pass;
  pass.kind = device_loss(kind);
  pass.batch = batch;
  pass.out = model.output_width();
  pass.mean_at = model.output_mean_at();
  pass.std_at = model.output_std_at();
  pass.target = layout.target;
  pass.label = layout.label;
  pass.weight = layout.weight;
  pass.mask = layout.mask;
  pass.v = model.top(tape, batch);
  pass.buffers = whole(buffers);
  pass.samples = whole(samples);
  pass.result = model.top_gradient(tape, batch);
  pass.result_stride = padded(pass.out);
  return pass;
}

}  // namespace gradloom
