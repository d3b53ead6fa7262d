#include "gradloom/kernels/optimizer/device.h"

#include <algorithm>

#include "gradloom/kernels/reduce/reduce.h"
#include "gradloom/kernels/shader/shaders.h"

namespace gradloom::kernels {

template <class T>
void record_update(vulkan::Device& device, vulkan::Commands& commands, const DeviceUpdatePass& pass,
                   const std::string& label) {
  const std::uint32_t push[] = {static_cast<std::uint32_t>(pass.count), static_cast<std::uint32_t>(pass.kind),
                                pass.clipped ? 1u : 0u};
  const vulkan::Binding bindings[] = {pass.parameters, pass.gradient, pass.first, pass.second,
                                      pass.samples,    pass.status,   pass.scale};
  commands.dispatch({&device.kernel(shader_source<T>(Shader::update), {}), bindings, std::as_bytes(std::span(push)),
                     (pass.count + kShaderGroup - 1) / kShaderGroup, label});
}

template <class T>
NormClip<T>::NormClip(vulkan::Device& device, std::vector<NormRange> ranges)
    : device_(device), ranges_(std::move(ranges)) {
  std::vector<std::uint32_t> table;
  for (const NormRange& range : ranges_) {
    const std::size_t chunks = reduce_scratch(range.count);
    table.push_back(static_cast<std::uint32_t>(sums_));
    table.push_back(static_cast<std::uint32_t>(chunks));
    sums_ += chunks;
  }
  if (sums_ == 0) return;
  sums_buffer_ = device.make_buffer(2 * sums_ * sizeof(T), vulkan::BufferUse::device);
  table_ = device.make_buffer(table.size() * sizeof(std::uint32_t), vulkan::BufferUse::device);
  scale_ = device.make_buffer(sizeof(T), vulkan::BufferUse::device);
  device.write(table_, 0, std::as_bytes(std::span(table)));
}

template <class T>
vulkan::Binding NormClip<T>::scale() const {
  return {&scale_, 0, sizeof(T)};
}

template <class T>
void NormClip<T>::record(vulkan::Commands& commands, const vulkan::Binding& samples) const {
  if (sums_ == 0) return;
  constexpr std::size_t kChunksOfGroup = 4;
  const vulkan::Binding sums{&sums_buffer_, 0, sums_buffer_.bytes()};
  std::uint32_t at = 0;
  for (const NormRange& range : ranges_) {
    const auto chunks = static_cast<std::uint32_t>(reduce_scratch(range.count));
    const std::uint32_t push[] = {static_cast<std::uint32_t>(range.first), static_cast<std::uint32_t>(range.count), at};
    const vulkan::Binding bindings[] = {range.values, sums};
    commands.dispatch({&device_.kernel(shader_source<T>(Shader::squares), {}), bindings,
                       std::as_bytes(std::span(push)), (chunks + kChunksOfGroup - 1) / kChunksOfGroup, "clip"});
    // Ranges write to one binding; only the next kernel reads it, but a checker sees no more than the binding.
    commands.barrier();
    at += chunks;
  }
  const std::uint32_t push[] = {static_cast<std::uint32_t>(ranges_.size()), static_cast<std::uint32_t>(sums_)};
  const vulkan::Binding bindings[] = {sums, {&table_, 0, table_.bytes()}, samples, scale()};
  commands.dispatch({&device_.kernel(shader_source<T>(Shader::clip), {}), bindings, std::as_bytes(std::span(push)), 1,
                     "clip"});
  commands.barrier();
}

#define GRADLOOM_INSTANTIATE(T)                                                                                    \
  template void record_update<T>(vulkan::Device&, vulkan::Commands&, const DeviceUpdatePass&, const std::string&); \
  template class NormClip<T>;
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::kernels
