// What trainers on a device share: the loss of a batch there.
#pragma once

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/loss/device.h"
#include "gradloom/models/device_model.h"
#include "gradloom/train/loss.h"

namespace gradloom {

// The pass that turns the model's output on the tape into dl_d(output) there; losses and status are to be added.
template <class M>
kernels::loss::DevicePass loss_pass(const M& model, const DeviceTape& tape, std::size_t batch, LossKind kind,
                                    const BatchLayout& layout, const vulkan::DeviceBuffer& samples,
                                    const vulkan::DeviceBuffer& buffers) {
  kernels::loss::DevicePass pass;
  pass.kind = kind;
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
