// The spline kernels on a Vulkan device: they record what spline.h defines, with its orders of summation and bits.
//
// Layouts differ in one point: activations and their gradients are row-major, (B, OutP), and the batch itself (B, In).
// There is no tape but the activations: backward evaluates the basis again. Where a layer's arrays lie is told as byte
// ranges, which start at multiples of 256 bytes, and as elements of the model's buffers.
#pragma once

#include "gradloom/exec/vulkan/device.h"
#include "gradloom/kernels/reduce/device.h"
#include "gradloom/kernels/shader/shaders.h"
#include "gradloom/kernels/spline/spline.h"

namespace gradloom::kernels::spline {

struct DeviceLayer {
  Shape shape;
  std::uint32_t bias_at = 0;  // element behind the layer's first weight
  // Elements of the model's buffers; extended and inverse for free knots only.
  std::uint32_t lo_at = 0, hi_at = 0, inverse_step_at = 0, extended_at = 0, inverse_at = 0;
  // Of the first layer, whose inputs are (x - mean) * scale; others take them as they are.
  bool normalise = false;
  std::uint32_t mean_at = 0, scale_at = 0;
};

struct DevicePass {
  std::size_t batch = 0;
  std::size_t x_stride = 0;    // In for the batch, InP for activations
  vulkan::Binding parameters;  // weight and bias of the layer
  vulkan::Binding buffers;     // of the model
  vulkan::Binding x;           // (B, x_stride)
  vulkan::Binding y;           // (B, OutP): forward writes y, backward reads dl_dy
};

// Records one dispatch; no barrier.
template <class T>
void record_forward(vulkan::Device& device, vulkan::Commands& commands, const DeviceLayer& layer,
                    const DevicePass& pass, const std::string& label);

// Throws unsuitable_device when the device cannot run the passes of a layer over a batch of this size. Recording throws
// the same, but may come late.
template <class T>
void require_forward(const vulkan::DeviceInfo& device, const Shape& shape, std::size_t batch);
template <class T>
void require_backward(const vulkan::DeviceInfo& device, const Shape& shape, std::size_t batch);
// The same for the norm of a gradient to which so many groups of all layers add.
template <class T>
void require_norm(const vulkan::DeviceInfo& device, const Shape& shape, std::size_t batch, std::size_t shares);

// The leaves of a batch in an optimizer step (reduce/tree_sum.h). Leaves 0 and 1 are added where the result is; more go
// through a tree, which the recording has to know, while their numbers are read when it runs.
struct DeviceLeaves {
  bool begin_step = true;     // leaf 0 is the first; else others came before
  bool complete_step = true;  // no leaf comes behind
  bool tree = false;
  reduce::DeviceTreeMemory memory;  // for a tree
};
// Whether those of a batch of this size make a tree, behind so many others.
inline bool makes_tree(std::size_t leaf, std::size_t batch) { return reduce::tree_levels(leaf + leaves(batch)) > 1; }

// Bytes for the sums of leaves of a layer that stand side by side, for batches of this size: a few MB, or one leaf.
template <class T>
std::size_t leaf_bytes(const DeviceLayer& layer, std::size_t batch);

struct DeviceGradients {
  vulkan::Binding gradient;  // laid out as the layer's parameters
  bool weight = true, bias = true;
  DeviceLeaves leaves;
  vulkan::Binding dl_dx;         // (B, dl_dx_stride); a buffer is needed even when it is not asked for
  std::size_t dl_dx_stride = 0;  // InP for the gradient of the layer below, In for that of the batch; 0: not asked for
  // The norm of all gradients of a step (optimizer/device.h): its shares, and the first one of this layer's groups. No
  // buffer: not asked for.
  vulkan::Binding norm;
  std::size_t first_share = 0, shares = 0;
};

// Groups that make the gradients of a layer's weights and biases final: each has a share of the norm.
template <class T>
std::size_t gradient_shares(const vulkan::DeviceInfo& device, const Shape& shape, std::size_t batch, bool tree,
                            bool weight, bool bias);

// Records one dispatch for the gradients of weights and biases and one for dl_dx, as they are asked for: they may
// overlap. A tree takes one more behind the first, with a barrier between, as often as the memory for leaves demands.
// No barrier behind the last.
template <class T>
void record_backward(vulkan::Device& device, vulkan::Commands& commands, const DeviceLayer& layer,
                     const DevicePass& pass, const DeviceGradients& gradients, const std::string& label);

// Room for the spans of a layer in workgroup memory.
inline std::size_t counted_spans(const Shape& shape) {
  return shape.grid <= 16 ? 16 : shape.grid <= 64 ? 64 : kMaxGrid;
}

// Bytes of workgroup memory that the gradient of the weights and its norm need for `inputs` inputs at a time.
template <class T>
std::size_t backward_shared_bytes(const Shape& shape, std::size_t inputs) {
  constexpr std::size_t kNorm = kShaderGroup * sizeof(T) + sizeof(std::uint32_t);
  return kNorm + inputs * (kChunk * ((shape.degree + 2) * sizeof(T) + 2 * sizeof(std::uint32_t)) +
                           (counted_spans(shape) + 1) * sizeof(std::uint32_t));
}

}  // namespace gradloom::kernels::spline
