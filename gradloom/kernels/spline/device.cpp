#include "gradloom/kernels/spline/device.h"

#include <algorithm>
#include <bit>

#include "gradloom/base/error.h"
#include "gradloom/base/rounding.h"
#include "gradloom/kernels/dispatch.h"

namespace gradloom::kernels::spline {
namespace {

using uint = std::uint32_t;
struct LayerPush {
#include "gradloom/kernels/spline/push.inc"
};
#include "gradloom/kernels/spline/flags.inc"

constexpr std::size_t kBusy = 1 << 14;  // invocations that keep a device busy

std::uint32_t narrow(std::size_t n) { return static_cast<std::uint32_t>(n); }

LayerPush push_of(const DeviceLayer& layer, const DevicePass& pass) {
  const Shape& s = layer.shape;
  if (pass.batch == 0) throw_invalid("a batch of 0 samples was given to the device");
  LayerPush p{};
  p.batch = narrow(pass.batch);
  p.in_width = narrow(s.in);
  p.out_width = narrow(s.out);
  p.rows = narrow(s.rows());
  p.grid = s.grid;
  p.flags = (s.bias ? kHasBias : 0) | (layer.normalise ? kNormalise : 0) |
            (s.outside == OutOfGrid::linear ? kLinear : 0) | (s.outside == OutOfGrid::zero ? kZero : 0) |
            (s.outside == OutOfGrid::clamp ? kClamp : 0);
  p.x_stride = narrow(pass.x_stride);
  p.bias_at = layer.bias_at;
  p.lo_at = layer.lo_at;
  p.hi_at = layer.hi_at;
  p.inverse_step_at = layer.inverse_step_at;
  p.extended_at = layer.extended_at;
  p.inverse_at = layer.inverse_at;
  p.mean_at = layer.mean_at;
  p.scale_at = layer.scale_at;
  return p;
}

std::uint32_t kind_of(const Shape& s) {
  return (s.base ? kKindBase : 0) | (s.knots == Knots::free ? kKindFreeKnots : 0) |
         (s.outside == OutOfGrid::extend ? kKindExtends : 0);
}

// A software device's time follows its loads: there, neighbours of a subgroup load for each other, many samples share
// what is loaded, and a group is no larger than it must be. Other devices broadcast what a subgroup loads from one
// address by themselves, and want many invocations with few registers.
bool counts_loads(const vulkan::DeviceInfo& device) { return device.kind == vulkan::DeviceKind::software; }

std::uint32_t share_of(const vulkan::DeviceInfo& device, std::uint32_t most) {
  return counts_loads(device) ? std::min(std::bit_floor(std::clamp(device.subgroup, 1u, 8u)), most) : 1;
}

// Large tiles load less and take longer to compile.
bool is_large(const Shape& s, std::size_t batch) { return batch >= 32 && s.in * s.out_padded() >= 1024; }

// Mesa's software driver ends all loops of an invocation after 65535 turns, in sum, and says nothing. Layers that would
// need more are refused.
constexpr std::size_t kMostTurns = 60'000, kMostTurnsOfNorm = 5'000;

void require_turns(const vulkan::DeviceInfo& device, std::size_t turns) {
  if (counts_loads(device) && turns > kMostTurns)
    throw Exception(ErrorCode::unsuitable_device, "a layer with this batch needs " + std::to_string(turns) +
                                                      " iterations of a shader's loops; " + device.name +
                                                      " runs at most " + std::to_string(kMostTurns));
}

// Turns of one evaluation of the basis: the search for a knot.
std::size_t basis_turns(const Shape& s) {
  return s.knots == Knots::free ? std::bit_width(s.grid + 4 * s.degree) + 1 : 0;
}

// Whether all rows pass by all samples of an invocation, of which each takes p + 1; else each loads its own.
bool rows_pass(const Shape& s) { return s.spline_rows() <= 64; }

// Invocations along the outputs, each with four.
std::uint32_t lanes_for(const Shape& s) {
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(std::bit_ceil(s.out_padded() / 4), 4, 8));
}

// Invocations that share, those of a group, and those of a subgroup: 1 where its size is not certain.
struct Groups {
  std::uint32_t share = 1, group = kShaderGroup, subgroup = 1;
};

// On a software device a group is one subgroup: then no barrier stops it, and nothing needs to be kept across one.
Groups small_groups(const vulkan::DeviceInfo& device, std::uint32_t lanes) {
  return {share_of(device, lanes), std::max(lanes, 8u), share_of(device, 8)};
}

struct ForwardTiles {
  Groups groups;
  std::uint32_t tile, samples;
};

ForwardTiles forward_tiles(const vulkan::DeviceInfo& device, const Shape& s, std::size_t batch) {
  if (counts_loads(device) && rows_pass(s)) {
    const std::uint32_t tile = lanes_for(s), samples = !is_large(s, batch) ? 8 : batch < 128 ? 32 : 64;
    const ForwardTiles tiles{small_groups(device, tile), tile, samples};
    require_turns(device, s.in * (s.rows() + 2 + samples / tiles.groups.share * basis_turns(s)));
    return tiles;
  }
  require_turns(device, s.in * (s.degree + 4 + basis_turns(s)));
  // Few outputs: more samples in a group instead.
  ForwardTiles tiles{{}, s.out_padded() <= 16 ? 4u : 16u, 8};
  // More loads are saved, the fewer rows there are in comparison; but a device wants many invocations.
  if (s.grid + s.degree > tiles.samples * (s.degree + 1)) tiles.samples = 1;
  while (tiles.samples > 1 && divide_up(batch, tiles.samples) * (s.out_padded() / 4) < kBusy) tiles.samples /= 2;
  return tiles;
}

struct WeightTiles {
  Groups groups;
  std::uint32_t lanes, spans, held, inputs;  // inputs: of a group
};

// Samples of a group: all where they are leaves 0 and 1, one leaf of a tree.
std::size_t samples_of_group(std::size_t batch) { return std::min(batch, 2 * kChunk); }

template <class T>
WeightTiles weight_tiles(const vulkan::DeviceInfo& device, const Shape& s, std::size_t batch) {
  const std::uint32_t spans = narrow(counted_spans(s));
  if (counts_loads(device)) {
    const std::uint32_t lanes = lanes_for(s), held = !is_large(s, batch) ? 1 : batch <= 64 ? 64 : narrow(kChunk);
    const Groups groups = small_groups(device, lanes);
    const std::size_t chunks = leaves(samples_of_group(batch)), blocks = kChunk / groups.share;
    const std::size_t round = kChunk / lanes * (1 + basis_turns(s)) + divide_up(s.grid + 1, lanes) * 2 * blocks +
                              s.rows() + s.grid + blocks * (1 + basis_turns(s));
    std::uint32_t inputs = 16;
    const auto turns = [&] { return chunks * (kChunk + inputs * lanes / groups.group * round); };
    while (inputs > groups.group / lanes && turns() > kMostTurns) inputs /= 2;
    require_turns(device, turns());
    return {groups, lanes, spans, held, inputs};
  }
  // As many inputs at a time as fit.
  std::uint32_t inputs = 4;
  while (inputs > 1 && backward_shared_bytes<T>(s, inputs) > device.shared_bytes) inputs /= 2;
  if (backward_shared_bytes<T>(s, inputs) > device.shared_bytes)
    throw Exception(ErrorCode::unsuitable_device,
                    "degree " + std::to_string(s.degree) + " needs " + std::to_string(backward_shared_bytes<T>(s, 1)) +
                        " bytes of workgroup memory; " + device.name + " has " + std::to_string(device.shared_bytes));
  return {{}, narrow(kShaderGroup) / inputs, spans, 1, inputs};
}

struct WeightGroups {
  std::size_t weight = 0, bias = 0;
};

WeightGroups weight_groups(const WeightTiles& t, const Shape& s, bool weight, bool bias) {
  WeightGroups groups;
  if (weight) groups.weight = divide_up(s.in, t.inputs) * divide_up(s.out_padded() / 4, t.lanes);
  if (bias && s.bias) groups.bias = divide_up(s.out_padded(), t.groups.group);
  return groups;
}

struct InputTiles {
  Groups groups;
  std::uint32_t samples, inputs;
};

InputTiles input_tiles(const vulkan::DeviceInfo& device, const Shape& s, std::size_t batch) {
  if (counts_loads(device) && rows_pass(s)) {
    InputTiles tiles{small_groups(device, 8), is_large(s, batch) ? 4u : 1u, 32};
    const auto turns = [&] {
      return divide_up(s.out, kBlock) * tiles.inputs * (s.rows() + 2 + tiles.samples * basis_turns(s));
    };
    while (tiles.inputs > 1 && turns() > kMostTurns) tiles.inputs /= 2;
    require_turns(device, turns());
    return tiles;
  }
  const std::uint32_t inputs = static_cast<std::uint32_t>(std::clamp<std::size_t>(s.in * batch / kBusy, 1, 8));
  require_turns(device, divide_up(s.out, kBlock) * inputs * (s.degree + 4 + basis_turns(s)));
  return {{}, 1, inputs};
}

}  // namespace

template <class T>
void require_forward(const vulkan::DeviceInfo& device, const Shape& shape, std::size_t batch) {
  forward_tiles(device, shape, batch);
}

template <class T>
void require_backward(const vulkan::DeviceInfo& device, const Shape& shape, std::size_t batch) {
  weight_tiles<T>(device, shape, batch);
  input_tiles(device, shape, batch);
}

template <class T>
void require_norm(const vulkan::DeviceInfo& device, const Shape& shape, std::size_t batch, std::size_t shares) {
  const std::size_t group = std::min<std::size_t>(weight_tiles<T>(device, shape, batch).groups.group, kShaderGroup);
  const std::size_t turns = divide_up(shares, group);
  if (counts_loads(device) && turns > kMostTurnsOfNorm)
    throw Exception(ErrorCode::unsuitable_device,
                    "the norm of the gradient has " + std::to_string(shares) + " parts, which is too many for " +
                        device.name + "; leave optimizer.clip_norm out, or set optimizer.device = \"host\"");
}

template <class T>
void record_forward(vulkan::Device& device, vulkan::Commands& commands, const DeviceLayer& layer,
                    const DevicePass& pass, const std::string& label) {
  const LayerPush push = push_of(layer, pass);
  const ForwardTiles t = forward_tiles(device.info(), layer.shape, pass.batch);
  const std::uint32_t constants[] = {
      layer.shape.degree, kind_of(layer.shape), t.groups.share, t.groups.group, t.groups.subgroup, t.tile, t.samples};
  const vulkan::Binding bindings[] = {pass.parameters, pass.buffers, pass.x, pass.y};
  commands.dispatch(
      {&device.kernel(shader_source<T>(Shader::spline_forward), constants), bindings,
       std::as_bytes(std::span(&push, 1)),
       divide_up(pass.batch, t.groups.group / t.tile * t.samples) * divide_up(layer.shape.out_padded() / 4, t.tile),
       label});
}

std::size_t weight_count(const Shape& s) { return s.in * s.rows() * s.out_padded(); }

// Elements from the sums of one leaf to those of the next.
std::size_t leaf_stride(const DeviceLayer& layer) {
  const std::size_t end = layer.shape.bias ? layer.bias_at + layer.shape.out_padded() : weight_count(layer.shape);
  return round_up(end, kPanel);
}

template <class T>
std::size_t leaf_bytes(const DeviceLayer& layer, std::size_t batch) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  const std::size_t each = leaf_stride(layer) * sizeof(T);
  return each * std::clamp<std::size_t>(kMostBytes / each, 1, leaves(batch));
}

template <class T>
std::size_t gradient_shares(const vulkan::DeviceInfo& device, const Shape& shape, std::size_t batch, bool tree,
                            bool weight, bool bias) {
  if (tree)
    return reduce::tree_groups(device,
                               (weight ? weight_count(shape) : 0) + (bias && shape.bias ? shape.out_padded() : 0));
  const WeightGroups groups = weight_groups(weight_tiles<T>(device, shape, batch), shape, weight, bias);
  return groups.weight + groups.bias;
}

// Parts of a batch, each summed by groups of its own.
struct Parts {
  std::size_t count = 1, first_sample = 0, samples = 0, stride = 0;
  vulkan::Binding sums;
};

template <class T>
void record_weight_gradient(vulkan::Device& device, vulkan::Commands& commands, const DeviceLayer& layer,
                            const DevicePass& pass, const DeviceGradients& gradients, const Parts& parts,
                            const std::string& label) {
  LayerPush push = push_of(layer, pass);
  const Shape& s = layer.shape;
  const bool tree = gradients.leaves.tree, norm = !tree && gradients.norm.buffer != nullptr;
  const WeightTiles t = weight_tiles<T>(device.info(), s, pass.batch);
  const WeightGroups groups = weight_groups(t, s, gradients.weight, gradients.bias);
  push.weight_groups = narrow(groups.weight);
  push.bias_groups = narrow(groups.bias);
  push.first_share = narrow(gradients.first_share);
  push.shares = narrow(gradients.shares);
  push.tile = t.inputs;
  push.parts = narrow(parts.count);
  push.first_sample = narrow(parts.first_sample);
  push.part_samples = narrow(parts.samples);
  push.part_stride = narrow(parts.stride);
  push.flags |= (gradients.leaves.begin_step ? 0 : kAccumulate) | (tree ? kLeaves : 0);
  const std::uint32_t constants[] = {s.degree, kind_of(s), t.groups.share, t.groups.group, t.groups.subgroup,
                                     t.lanes,  t.spans,    t.held,         norm ? 1u : 0u};
  const vulkan::Binding bindings[] = {pass.parameters, pass.buffers, pass.x,
                                      pass.y,          parts.sums,   norm ? gradients.norm : parts.sums};
  commands.dispatch({&device.kernel(shader_source<T>(Shader::spline_weight_gradient), constants), bindings,
                     std::as_bytes(std::span(&push, 1)), parts.count * (groups.weight + groups.bias), label});
}

// As many leaves at once as there is memory for.
template <class T>
void record_tree_gradient(vulkan::Device& device, vulkan::Commands& commands, const DeviceLayer& layer,
                          const DevicePass& pass, const DeviceGradients& gradients, const std::string& label) {
  const Shape& s = layer.shape;
  const DeviceLeaves& of = gradients.leaves;
  const std::size_t stride = leaf_stride(layer), all = leaves(pass.batch);
  const std::size_t at_once = of.memory.leaves.bytes / (stride * sizeof(T));
  if (at_once == 0 || of.memory.upper.buffer == nullptr)
    throw_invalid("a gradient over several leaves has no memory for their sums");
  reduce::DeviceTreePass tree;
  tree.root = gradients.gradient;
  tree.memory = of.memory;
  tree.first_count = gradients.weight ? weight_count(s) : 0;
  tree.second_at = layer.bias_at;
  tree.second_count = gradients.bias && s.bias ? s.out_padded() : 0;
  tree.leaf_stride = stride;
  tree.first_share = gradients.first_share;
  tree.shares = gradients.shares;
  for (std::size_t first = 0; first < all; first += at_once) {
    if (first > 0) commands.barrier();
    const std::size_t count = std::min(at_once, all - first);
    record_weight_gradient<T>(device, commands, layer, pass, gradients,
                              {count, first * kChunk, kChunk, stride, of.memory.leaves}, label);
    commands.barrier();
    tree.leaves = count;
    tree.first_leaf = first;
    tree.complete = of.complete_step && first + count == all;
    tree.norm = tree.complete ? gradients.norm : vulkan::Binding{};
    reduce::record_tree<T>(device, commands, tree, label + ", tree");
  }
}

template <class T>
void record_input_gradient(vulkan::Device& device, vulkan::Commands& commands, const DeviceLayer& layer,
                           const DevicePass& pass, const DeviceGradients& gradients, const std::string& label) {
  LayerPush push = push_of(layer, pass);
  const Shape& s = layer.shape;
  const InputTiles t = input_tiles(device.info(), s, pass.batch);
  push.tile = t.inputs;
  push.below_stride = narrow(gradients.dl_dx_stride);
  const std::size_t lanes = s.out_padded();
  const std::uint32_t steps = narrow(std::min(lanes, kBlock) / kPanel);
  const std::uint32_t cut = lanes > kBlock && lanes % kBlock != 0 ? 1 : 0;
  const std::uint32_t constants[] = {s.degree,          kind_of(s), t.groups.share, t.groups.group,
                                     t.groups.subgroup, t.samples,  steps,          cut};
  const vulkan::Binding bindings[] = {pass.parameters, pass.buffers, pass.x, pass.y, gradients.dl_dx};
  commands.dispatch({&device.kernel(shader_source<T>(Shader::spline_input_gradient), constants), bindings,
                     std::as_bytes(std::span(&push, 1)),
                     divide_up(gradients.dl_dx_stride, t.inputs) * divide_up(pass.batch, t.groups.group * t.samples),
                     label});
}

template <class T>
void record_backward(vulkan::Device& device, vulkan::Commands& commands, const DeviceLayer& layer,
                     const DevicePass& pass, const DeviceGradients& gradients, const std::string& label) {
  if (gradients.dl_dx_stride > 0) record_input_gradient<T>(device, commands, layer, pass, gradients, label + " inputs");
  if (!gradients.weight && !(gradients.bias && layer.shape.bias)) return;
  if (gradients.norm.buffer) require_norm<T>(device.info(), layer.shape, pass.batch, gradients.shares);
  if (gradients.leaves.tree)
    record_tree_gradient<T>(device, commands, layer, pass, gradients, label + " weights");
  else
    record_weight_gradient<T>(device, commands, layer, pass, gradients, {1, 0, pass.batch, 0, gradients.gradient},
                              label + " weights");
}

GRADLOOM_INSTANTIATE(gradient_shares);
GRADLOOM_INSTANTIATE(leaf_bytes);
GRADLOOM_INSTANTIATE(require_forward);
GRADLOOM_INSTANTIATE(require_backward);
GRADLOOM_INSTANTIATE(require_norm);
GRADLOOM_INSTANTIATE(record_forward);
GRADLOOM_INSTANTIATE(record_backward);

}  // namespace gradloom::kernels::spline
