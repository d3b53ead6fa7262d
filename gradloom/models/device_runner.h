// DeviceRunner: passes of a model on a Vulkan device, for whoever holds arrays on the host.
#pragma once

#include <string>

#include "gradloom/base/error.h"
#include "gradloom/base/rounding.h"
#include "gradloom/kernels/shader/step.h"
#include "gradloom/models/device_model.h"

namespace gradloom {

// Passes of a model with arrays of its own on the device: predictions, and gradients for given dl_dy. Grows with the
// batch. Throws invalid_input for an empty batch, one of another width, or backward without forward.
template <class M>
class DeviceRunner {
 public:
  using T = typename M::Scalar;

  explicit DeviceRunner(const M& model);

  // Host arrays of the model's layout.
  void upload(std::span<const T> parameters, std::span<const T> buffers);
  // y (B, Out), any row stride.
  void forward(const RowBatch<T>& batch, View<T, 2> y);
  // For the batch of the last forward. gradient: overwritten or added to, as step.gradient and step.leaf say, on the
  // device, and then read back whole. dl_dx (B, In) may be empty.
  void backward(const Step& step, View<const T, 2> dl_dy, std::span<T> gradient, View<T, 2> dl_dx);

 private:
  void reserve(const RowBatch<T>& batch);
  void reserve_tree(const Step& step);
  kernels::loss::DevicePass loss_pass(kernels::loss::DeviceResult kind) const;

  const M& model_;
  vulkan::Device& device_;
  vulkan::DeviceBuffer parameters_, buffers_, gradient_, samples_, y_, unused_;
  DeviceTree tree_;
  DeviceTape tape_;
  BatchLayout layout_;
  std::size_t batch_ = 0, room_ = 0;  // of the last forward; of the memory
};

template <class M>
DeviceRunner<M>::DeviceRunner(const M& model) : model_(model), device_(model.device()) {
  const auto flat = [&](std::size_t count) {
    return device_.make_buffer(count * sizeof(T), vulkan::BufferUse::device);
  };
  parameters_ = flat(model.parameters().flat_size());
  buffers_ = flat(model.buffers().flat_size());
  gradient_ = flat(model.parameters().flat_size());
  unused_ = device_.make_buffer(kMemoryAlignment, vulkan::BufferUse::device);
  device_.zero(gradient_);
}

template <class M>
void DeviceRunner<M>::upload(std::span<const T> parameters, std::span<const T> buffers) {
  if (parameters.size() * sizeof(T) != parameters_.bytes() || buffers.size() * sizeof(T) != buffers_.bytes())
    throw_invalid("the arrays are those of a model of another shape");
  device_.write(parameters_, 0, std::as_bytes(parameters));
  device_.write(buffers_, 0, std::as_bytes(buffers));
}

template <class M>
void DeviceRunner<M>::reserve(const RowBatch<T>& batch) {
  if (batch.size == 0) throw_invalid("a batch of 0 samples was given to the device");
  if (batch.x.extent(1) != model_.input_width())
    throw_invalid("the batch has " + std::to_string(batch.x.extent(1)) + " features, the network " +
                  std::to_string(model_.input_width()) + " inputs");
  if (batch.size <= room_) return;
  room_ = 0;
  tape_ = {};
  tape_ = model_.make_tape(batch.size, true);
  // The widest layout there is: x, and dl_dy in the place of targets.
  const std::size_t widest = batch.size * (model_.input_width() + model_.output_width()) * sizeof(T);
  samples_ = device_.make_buffer(kernels::kStepHeadBytes + widest + 2 * kMemoryAlignment, vulkan::BufferUse::device);
  y_ = device_.make_buffer(batch.size * model_.output_width() * sizeof(T), vulkan::BufferUse::device);
  device_.require_range(samples_.bytes(), "a batch of " + std::to_string(batch.size) + " samples");
  room_ = batch.size;
}

// What it holds stays.
template <class M>
void DeviceRunner<M>::reserve_tree(const Step& step) {
  if (!model_.makes_tree(step.leaf, batch_)) return;
  DeviceTree tree = model_.make_tree(batch_, step.leaf + divide_up(batch_, model_.leaf_samples()));
  if (tree.levels.bytes() <= tree_.levels.bytes() && tree.leaves.bytes() <= tree_.leaves.bytes()) return;
  std::vector<std::byte> levels(std::min(tree_.levels.bytes(), tree.levels.bytes()));
  if (!levels.empty()) device_.read(tree_.levels, 0, levels);
  if (!levels.empty()) device_.write(tree.levels, 0, levels);
  tree_ = std::move(tree);
}

template <class M>
kernels::loss::DevicePass DeviceRunner<M>::loss_pass(kernels::loss::DeviceResult kind) const {
  kernels::loss::DevicePass pass;
  pass.result_kind = kind;
  pass.batch = batch_;
  pass.out = model_.output_width();
  pass.mean_at = model_.output_mean_at();
  pass.std_at = model_.output_std_at();
  pass.target = layout_.target;
  pass.v = model_.top(tape_, batch_);
  pass.buffers = whole(buffers_);
  pass.samples = whole(samples_);
  pass.losses = whole(unused_);
  pass.status = whole(unused_);
  return pass;
}

template <class M>
void DeviceRunner<M>::forward(const RowBatch<T>& batch, View<T, 2> y) {
  batch_ = 0;
  reserve(batch);
  RowBatch<T> inputs;
  inputs.size = batch.size;
  inputs.x = batch.x;
  layout_ = batch_layout(inputs);
  std::vector<std::byte> packed(layout_.bytes);
  pack_batch(inputs, layout_, packed.data());
  device_.write(samples_, 0, packed);
  batch_ = batch.size;
  vulkan::Commands commands(device_);
  model_.record_forward(commands, {&parameters_, &buffers_, &gradient_}, tape_, batch_,
                        {&samples_, layout_.x, batch_ * model_.input_width() * sizeof(T)});
  kernels::loss::DevicePass pass = loss_pass(kernels::loss::DeviceResult::output);
  pass.result = whole(y_);
  pass.result_stride = model_.output_width();
  kernels::loss::record<T>(device_, commands, pass);
  commands.finish();
  commands.submit();
  commands.wait();
  std::vector<T> rows(batch_ * model_.output_width());
  device_.read(y_, 0, std::as_writable_bytes(std::span(rows)));
  for (std::size_t s = 0; s < batch_; ++s)
    std::memcpy(y.row(s), rows.data() + s * model_.output_width(), model_.output_width() * sizeof(T));
}

template <class M>
void DeviceRunner<M>::backward(const Step& step, View<const T, 2> dl_dy, std::span<T> gradient, View<T, 2> dl_dx) {
  if (batch_ == 0) throw_invalid("backward was called before forward");
  if (dl_dy.extent(0) != batch_ || dl_dy.extent(1) != model_.output_width())
    throw_invalid("backward of " + std::to_string(dl_dy.extent(0)) + " samples with " +
                  std::to_string(dl_dy.extent(1)) + " outputs after a forward pass of " + std::to_string(batch_) +
                  " with " + std::to_string(model_.output_width()));
  const std::size_t in = model_.input_width(), out = model_.output_width();
  layout_.target = layout_.bytes;
  std::vector<T> given(batch_ * out);
  for (std::size_t s = 0; s < batch_; ++s) std::memcpy(given.data() + s * out, dl_dy.row(s), out * sizeof(T));
  device_.write(samples_, layout_.target, std::as_bytes(std::span(given)));
  reserve_tree(step);
  std::vector<std::byte> head(kernels::kStepHeadBytes);
  kernels::set_step_leaf(head.data(), step.leaf);
  device_.write(samples_, 0, head);
  vulkan::Commands commands(device_);
  kernels::loss::DevicePass pass = loss_pass(kernels::loss::DeviceResult::given);
  pass.result = model_.top_gradient(tape_, batch_);
  pass.result_stride = padded(out);
  kernels::loss::record<T>(device_, commands, pass);
  commands.barrier();
  model_.record_backward(commands, step, {&parameters_, &buffers_, &gradient_, &tree_, &samples_}, tape_, batch_,
                         {&samples_, layout_.x, batch_ * in * sizeof(T)}, !dl_dx.empty(), nullptr);
  commands.finish();
  commands.submit();
  commands.wait();
  if (!gradient.empty()) device_.read(gradient_, 0, std::as_writable_bytes(gradient));
  if (dl_dx.empty()) return;
  std::vector<T> rows(batch_ * in);
  device_.read(tape_.memory, tape_.dl_dx, std::as_writable_bytes(std::span(rows)));
  for (std::size_t s = 0; s < batch_; ++s) std::memcpy(dl_dx.row(s), rows.data() + s * in, in * sizeof(T));
}

}  // namespace gradloom
