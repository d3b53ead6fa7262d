// Models on a Vulkan device: the shape of one, and where its arrays and batches lie.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstring>

#include "gradloom/data/batch.h"
#include "gradloom/exec/vulkan/device.h"
#include "gradloom/kernels/loss/device.h"
#include "gradloom/models/model.h"

namespace gradloom {

// Memory for gradients of steps with more than two leaves (kernels/reduce/tree_sum.h); else empty.
struct DeviceTree {
  vulkan::DeviceBuffer levels;  // upper levels of the gradient's sum, each as long as it
  vulkan::DeviceBuffer leaves;  // sums of leaves before they are added
};

// The flat arrays of a model on the device; they belong to the trainer or runner.
struct DeviceArrays {
  const vulkan::DeviceBuffer* parameters = nullptr;
  const vulkan::DeviceBuffer* buffers = nullptr;
  const vulkan::DeviceBuffer* gradient = nullptr;
  const DeviceTree* tree = nullptr;                 // for steps with more than two leaves
  const vulkan::DeviceBuffer* step_head = nullptr;  // the batch, whose head says how many leaves came before
};

inline vulkan::Binding whole(const vulkan::DeviceBuffer& buffer) { return {&buffer, 0, buffer.bytes()}; }

// What a pass left on the device: made for the largest batch.
struct DeviceTape {
  std::size_t batch = 0;  // the largest
  vulkan::DeviceBuffer memory;
  std::vector<std::uint64_t> activations, gradients;  // bytes; one of each per layer: its nodes, dl_d(sums)
  // The same of its sums and of dl_d(nodes): other places only where nodes multiply.
  std::vector<std::uint64_t> sums, node_gradients;
  std::uint64_t dl_dx = 0;
  bool input_gradient = false;
};

// Is told, while a step is recorded, that elements [begin, end) of the gradient are final and their parameters not read
// any more. It may record what works on them, without barriers: what follows does not touch them.
class DeviceSink {
 public:
  virtual ~DeviceSink() = default;
  virtual void finished(vulkan::Commands& commands, std::size_t begin, std::size_t end) = 0;
  // Asked before anything is recorded: where the norm of the gradient goes, to which so many groups have something to
  // add (kernels/optimizer/device.h). No buffer: it is not wanted.
  virtual vulkan::Binding norm(std::size_t /*shares*/) { return {}; }
};

// Where the parts of a batch lie in its buffer, in bytes from multiples of 256; 0: not there. The head (shader/step.h)
// comes first.
struct BatchLayout {
  std::uint64_t x = 0, target = 0, label = 0, weight = 0, mask = 0, bytes = 0;
};

template <class T>
BatchLayout batch_layout(const RowBatch<T>& batch);

// Copies the samples (not the head) to `to`, laid out like that.
template <class T>
void pack_batch(const RowBatch<T>& batch, const BatchLayout& layout, std::byte* to);

// The levels that hold something behind so many leaves, as TrainState::levels has them.
template <class T>
void write_levels(vulkan::Device& device, const DeviceTree& tree, std::span<const T> levels, std::size_t leaves,
                  std::size_t size) {
  const std::size_t count = (std::max(1u, kernels::reduce::tree_height(leaves)) - 1) * size;
  if (levels.size() < count || tree.levels.bytes() < count * sizeof(T))
    throw_invalid("a sum over " + std::to_string(leaves) + " leaves has too few levels");
  if (count > 0) device.write(tree.levels, 0, std::as_bytes(levels.first(count)));
}
template <class T>
void read_levels(vulkan::Device& device, const DeviceTree& tree, Buffer<T>& levels, std::size_t leaves,
                 std::size_t size) {
  const std::size_t count = (std::max(1u, kernels::reduce::tree_height(leaves)) - 1) * size;
  if (levels.size() < count) levels = Buffer<T>(count);
  if (count > 0) device.read(tree.levels, 0, std::as_writable_bytes(levels.span().first(count)));
}

// T is the scalar. host() is the same model on the CPU. record_forward leaves the last layer's output in the tape,
// record_backward starts from the gradient there; dl_dx of the batch goes to the tape when the tape has room for it and
// `inputs` says so. Both end with a barrier. A sink is asked for norm() once, and gets it. require_backward and
// require_norm (of the gradient) throw unsuitable_device when batches of that size are too large for it. Leaves are
// those of the model on the CPU: Step::leaf says, when a step is recorded, whether they make a tree with those before;
// their number is that in the head of the batch. make_tree makes room for batches of that size in steps of so many
// leaves. record_backward computes sums over samples alone; what host() adds behind them (models/penalty.h) is the
// caller's.
template <class M>
concept DeviceModel = requires(const M& m, vulkan::Commands& commands, const DeviceArrays& arrays,
                               const DeviceTape& tape, std::size_t batch, vulkan::Binding x, const Step& step,
                               DeviceSink* sink, bool inputs) {
  typename M::Scalar;
  { m.parameters() } -> std::convertible_to<const Slices&>;
  { m.buffers() } -> std::convertible_to<const Slices&>;
  { m.input_width() } -> std::convertible_to<std::size_t>;
  { m.output_width() } -> std::convertible_to<std::size_t>;
  { m.output_mean_at() } -> std::convertible_to<std::uint32_t>;
  { m.output_std_at() } -> std::convertible_to<std::uint32_t>;
  { m.layers() } -> std::convertible_to<std::size_t>;
  { m.device() } -> std::convertible_to<vulkan::Device&>;
  m.host();
  { m.make_tape(batch, inputs) } -> std::same_as<DeviceTape>;
  { m.leaf_samples() } -> std::convertible_to<std::size_t>;
  { m.make_tree(batch, batch) } -> std::same_as<DeviceTree>;
  { m.makes_tree(batch, batch) } -> std::convertible_to<bool>;
  m.require_backward(batch);
  m.require_norm(batch);
  m.record_forward(commands, arrays, tape, batch, x);
  m.record_backward(commands, step, arrays, tape, batch, x, inputs, sink);
  { m.top(tape, batch) } -> std::same_as<vulkan::Binding>;
  { m.top_gradient(tape, batch) } -> std::same_as<vulkan::Binding>;
};

}  // namespace gradloom
