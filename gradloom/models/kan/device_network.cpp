#include "gradloom/models/kan/device_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/product/device.h"
#include "gradloom/kernels/shader/step.h"

namespace gradloom::kan {

namespace spline = kernels::spline;

namespace {
vulkan::Binding elements(const vulkan::DeviceBuffer& buffer, std::size_t begin, std::size_t end, std::size_t size) {
  return {&buffer, begin * size, (end - begin) * size};
}
}  // namespace

template <class T>
typename DeviceNetwork<T>::Range DeviceNetwork<T>::layer_range(std::size_t l) const {
  const auto& at = network_.slices(l);
  const Slice& weight = parameters()[at.weight];
  return {weight.offset, network_.shape(l).bias ? parameters()[at.bias].end() : weight.end()};
}

template <class T>
DeviceNetwork<T>::DeviceNetwork(vulkan::Device& device, const Network<T>& network)
    : device_(device), network_(network) {
  if (sizeof(T) == 8 && !device.info().float64)
    throw Exception(ErrorCode::unsuitable_device,
                    fmt::format("the device {} has no 64-bit floating-point numbers; use precision = \"float32\"",
                                device.info().name));
  device.require_range(buffers().flat_size() * sizeof(T), "the network's grids");
  for (std::size_t l = 0; l < layers(); ++l) {
    const Range range = layer_range(l);
    device.require_range((range.end - range.begin) * sizeof(T), fmt::format("layer {} of the network", l));
    const auto& at = network.slices(l);
    spline::DeviceLayer layer;
    layer.shape = network.shape(l);
    if (layer.shape.bias) layer.bias_at = static_cast<std::uint32_t>(parameters()[at.bias].offset - range.begin);
    layer.lo_at = buffer_at(at.lo);
    layer.hi_at = buffer_at(at.hi);
    layer.inverse_step_at = buffer_at(at.inverse_step);
    if (layer.shape.knots == Knots::free) {
      layer.extended_at = buffer_at(at.extended);
      layer.inverse_at = buffer_at(at.inverse);
    }
    if (l == 0) {
      layer.normalise = true;
      layer.mean_at = buffer_at(network.affine().input_mean);
      layer.scale_at = buffer_at(network.affine().input_scale);
    }
    layers_.push_back(layer);
  }
}

template <class T>
DeviceTape DeviceNetwork<T>::make_tape(std::size_t batch, bool input_gradient) const {
  if (batch == 0) throw_invalid("a tape for batches of 0 samples was asked for");
  DeviceTape tape;
  tape.batch = batch;
  tape.input_gradient = input_gradient;
  std::uint64_t bytes = 0;
  const auto take = [&](std::size_t width) {
    const std::uint64_t at = bytes, size = batch * width * sizeof(T);
    device_.require_range(size, fmt::format("{} samples of {} values", batch, width));
    bytes += round_up(size, kMemoryAlignment);
    return at;
  };
  for (std::size_t l = 0; l < layers(); ++l) {
    spline::require_forward<T>(device_.info(), network_.shape(l), batch);
    const LayerNodes nodes = network_.nodes(l);
    const bool multiplies = nodes.products > 0;
    tape.activations.push_back(take(padded(nodes.nodes)));
    tape.gradients.push_back(take(padded(nodes.sums())));
    tape.sums.push_back(multiplies ? take(padded(nodes.sums())) : tape.activations.back());
    tape.node_gradients.push_back(multiplies ? take(padded(nodes.nodes)) : tape.gradients.back());
  }
  tape.dl_dx = take(input_gradient ? input_width() : 1);
  tape.memory = device_.make_buffer(bytes, vulkan::BufferUse::device);
  return tape;
}

template <class T>
void DeviceNetwork<T>::require_backward(std::size_t batch) const {
  for (std::size_t l = 0; l < layers(); ++l) spline::require_backward<T>(device_.info(), network_.shape(l), batch);
}

template <class T>
DeviceTree DeviceNetwork<T>::make_tree(std::size_t batch, std::size_t leaves) const {
  const unsigned upper = kernels::reduce::tree_levels(leaves) - 1;
  if (upper == 0) return {};
  std::size_t bytes = 0;
  const std::size_t size = parameters().flat_size();
  for (std::size_t l = 0; l < layers(); ++l) {
    const Range range = layer_range(l);
    device_.require_range(((upper - 1) * size + range.end - range.begin) * sizeof(T),
                          fmt::format("{} sums of layer {}, for steps of {} leaves", upper, l, leaves));
    bytes = std::max(bytes, spline::leaf_bytes<T>(layers_[l], batch));
  }
  DeviceTree tree;
  tree.levels = device_.make_buffer(upper * size * sizeof(T), vulkan::BufferUse::device);
  tree.leaves = device_.make_buffer(bytes, vulkan::BufferUse::device);
  return tree;
}

template <class T>
spline::DeviceLeaves DeviceNetwork<T>::leaves_of(std::size_t l, const Step& step, const DeviceArrays& arrays,
                                                 std::size_t batch) const {
  spline::DeviceLeaves leaves;
  leaves.begin_step = step.gradient == GradientMode::overwrite;
  leaves.complete_step = step.gradient_is == GradientIs::complete;
  leaves.tree = makes_tree(step.leaf, batch);
  if (!leaves.tree) return leaves;
  if (!arrays.tree || arrays.tree->levels.bytes() == 0 || !arrays.step_head)
    throw_invalid("a gradient over several leaves has no memory for their sums");
  const Range range = layer_range(l);
  const std::size_t size = parameters().flat_size(), levels = arrays.tree->levels.bytes() / (size * sizeof(T));
  leaves.memory.upper = elements(arrays.tree->levels, range.begin, (levels - 1) * size + range.end, sizeof(T));
  leaves.memory.stride = size;
  leaves.memory.leaves = whole(arrays.tree->leaves);
  leaves.memory.step_head = {arrays.step_head, 0, kernels::kStepHeadBytes};
  return leaves;
}

template <class T>
void DeviceNetwork<T>::require_norm(std::size_t batch) const {
  std::size_t shares = 0;
  for (const bool tree : {false, true}) {
    std::size_t all = 0;
    for (std::size_t l = 0; l < layers(); ++l)
      all += spline::gradient_shares<T>(device_.info(), network_.shape(l), batch, tree, true, true);
    shares = std::max(shares, all);
  }
  for (std::size_t l = 0; l < layers(); ++l) spline::require_norm<T>(device_.info(), network_.shape(l), batch, shares);
}

template <class T>
vulkan::Binding DeviceNetwork<T>::top(const DeviceTape& tape, std::size_t batch) const {
  return {&tape.memory, tape.activations.back(), batch * network_.shape(layers() - 1).out_padded() * sizeof(T)};
}

template <class T>
vulkan::Binding DeviceNetwork<T>::top_gradient(const DeviceTape& tape, std::size_t batch) const {
  return {&tape.memory, tape.gradients.back(), batch * network_.shape(layers() - 1).out_padded() * sizeof(T)};
}

template <class T>
spline::DevicePass DeviceNetwork<T>::pass(std::size_t l, const DeviceArrays& arrays, const DeviceTape& tape,
                                          std::size_t batch, vulkan::Binding x) const {
  if (batch == 0 || batch > tape.batch)
    throw_invalid(fmt::format("the batch has {} samples, the tape was made for 1 to {}", batch, tape.batch));
  const Range range = layer_range(l);
  const std::size_t in = network_.shape(l).in_padded();
  spline::DevicePass p;
  p.batch = batch;
  p.x_stride = l == 0 ? input_width() : in;
  p.parameters = elements(*arrays.parameters, range.begin, range.end, sizeof(T));
  p.buffers = whole(*arrays.buffers);
  p.x = l == 0 ? x : vulkan::Binding{&tape.memory, tape.activations[l - 1], batch * in * sizeof(T)};
  return p;
}

template <class T>
void DeviceNetwork<T>::record_forward(vulkan::Commands& commands, const DeviceArrays& arrays, const DeviceTape& tape,
                                      std::size_t batch, vulkan::Binding x) const {
  for (std::size_t l = 0; l < layers(); ++l) {
    spline::DevicePass p = pass(l, arrays, tape, batch, x);
    p.y = {&tape.memory, tape.sums[l], batch * network_.shape(l).out_padded() * sizeof(T)};
    spline::record_forward<T>(device_, commands, layers_[l], p, fmt::format("forward layer {}", l));
    commands.barrier();
    const LayerNodes nodes = network_.nodes(l);
    if (nodes.products == 0) continue;
    kernels::product::record_forward<T>(device_, commands, nodes, batch, p.y,
                                        {&tape.memory, tape.activations[l], batch * padded(nodes.nodes) * sizeof(T)},
                                        fmt::format("products layer {}", l));
    commands.barrier();
  }
}

template <class T>
void DeviceNetwork<T>::record_backward(vulkan::Commands& commands, const Step& step, const DeviceArrays& arrays,
                                       const DeviceTape& tape, std::size_t batch, vulkan::Binding x, bool inputs,
                                       DeviceSink* sink) const {
  const auto weight_trains = [&](std::size_t l) { return !step.is_frozen(network_.slices(l).weight); };
  const auto bias_trains = [&](std::size_t l) {
    return network_.shape(l).bias && !step.is_frozen(network_.slices(l).bias);
  };
  // Nothing below the lowest trainable layer is computed, unless dl_dx is asked for.
  std::size_t lowest = 0;
  if (!inputs)
    while (lowest < layers() && !weight_trains(lowest) && !bias_trains(lowest)) ++lowest;
  const auto groups = [&](std::size_t l) {
    return spline::gradient_shares<T>(device_.info(), network_.shape(l), batch, makes_tree(step.leaf, batch),
                                      weight_trains(l), bias_trains(l));
  };
  std::size_t shares = 0, first_share = 0;
  for (std::size_t l = lowest; l < layers(); ++l) shares += groups(l);
  const vulkan::Binding norm = sink && shares > 0 ? sink->norm(shares) : vulkan::Binding{};
  for (std::size_t l = layers(); l-- > lowest;) {
    const spline::Shape& s = network_.shape(l);
    const Range range = layer_range(l);
    spline::DevicePass p = pass(l, arrays, tape, batch, x);
    p.y = {&tape.memory, tape.gradients[l], batch * s.out_padded() * sizeof(T)};
    spline::DeviceGradients g;
    g.gradient = elements(*arrays.gradient, range.begin, range.end, sizeof(T));
    g.weight = weight_trains(l);
    g.bias = bias_trains(l);
    g.leaves = leaves_of(l, step, arrays, batch);
    g.norm = norm;
    g.shares = shares;
    g.first_share = first_share;
    first_share += groups(l);
    const bool below = l > lowest || inputs;
    if (below) g.dl_dx_stride = l == 0 ? input_width() : s.in_padded();
    g.dl_dx = {&tape.memory, l == 0 ? tape.dl_dx : tape.node_gradients[l - 1],
               below ? batch * g.dl_dx_stride * sizeof(T) : sizeof(T)};
    spline::record_backward<T>(device_, commands, layers_[l], p, g, fmt::format("backward layer {}", l));
    commands.barrier();
    if (const LayerNodes nodes = l > 0 ? network_.nodes(l - 1) : LayerNodes{}; below && nodes.products > 0) {
      const std::uint64_t bytes = batch * padded(nodes.sums()) * sizeof(T);
      kernels::product::record_backward<T>(device_, commands, nodes, batch, {&tape.memory, tape.sums[l - 1], bytes},
                                           g.dl_dx, {&tape.memory, tape.gradients[l - 1], bytes},
                                           fmt::format("backward products layer {}", l - 1));
      commands.barrier();
    }
    if (!sink) continue;
    // What the sink records may overlap with the next layer: no barrier before that.
    const Slice& weight = parameters()[network_.slices(l).weight];
    if (g.weight && (g.bias || !s.bias))
      sink->finished(commands, range.begin, range.end);
    else if (g.weight)
      sink->finished(commands, weight.offset, weight.end());
    else if (g.bias)
      sink->finished(commands, parameters()[network_.slices(l).bias].offset, range.end);
  }
  if (sink) commands.barrier();
}

template class DeviceNetwork<float>;
template class DeviceNetwork<double>;
static_assert(DeviceModel<DeviceNetwork<float>> && DeviceModel<DeviceNetwork<double>>);

}  // namespace gradloom::kan
