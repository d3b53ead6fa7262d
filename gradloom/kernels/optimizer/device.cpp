#include "gradloom/kernels/optimizer/device.h"

#include <algorithm>

#include "gradloom/base/error.h"
#include "gradloom/kernels/reduce/reduce.h"
#include "gradloom/kernels/shader/shaders.h"

namespace gradloom::kernels {

template <class T>
void record_update(vulkan::Device& device, vulkan::Commands& commands, const DeviceUpdatePass& pass,
                   const std::string& label) {
  if (pass.count % 4 != 0)
    throw Exception(ErrorCode::invalid_input, "a range of parameters on a device is not a multiple of four");
  // A software device's time follows its loads: more elements share the constants there.
  const std::uint32_t quads = device.info().kind == vulkan::DeviceKind::software ? 4 : 1;
  const std::uint32_t constants[] = {static_cast<std::uint32_t>(pass.kind), quads};
  const std::uint32_t push[] = {static_cast<std::uint32_t>(pass.count / 4), pass.clipped ? 1u : 0u,
                                pass.decays ? 1u : 0u};
  const vulkan::Binding bindings[] = {pass.parameters, pass.gradient, pass.first, pass.second,
                                      pass.samples,    pass.status,   pass.scale};
  const std::uint64_t owned = 4 * kShaderGroup * quads;
  commands.dispatch({&device.kernel(shader_source<T>(Shader::update), constants), bindings,
                     std::as_bytes(std::span(push)), (pass.count + owned - 1) / owned, label});
}

std::vector<std::vector<NormRange>> bindable_ranges(const std::vector<NormRange>& ranges, std::size_t element_bytes,
                                                    std::uint64_t max_bytes) {
  std::vector<std::vector<NormRange>> parts;
  for (const NormRange& range : ranges) {
    const bool fits = !parts.empty() && (range.end - parts.back().front().begin) * element_bytes <= max_bytes;
    if (!fits) parts.emplace_back();
    parts.back().push_back(range);
  }
  return parts;
}

// Of the shader, for so many chunks.
static std::size_t groups_of(std::size_t sums) {
  constexpr std::size_t kChunksOfGroup = kShaderGroup / 16;
  return (sums + kChunksOfGroup - 1) / kChunksOfGroup;
}

template <class T>
NormClip<T>::NormClip(vulkan::Device& device, const vulkan::DeviceBuffer& values, const std::vector<NormRange>& ranges)
    : device_(device) {
  std::vector<std::uint32_t> table;
  for (const auto& part_ranges : bindable_ranges(ranges, sizeof(T), device.info().max_buffer_range)) {
    const std::size_t begin = part_ranges.front().begin;
    Part part;
    part.values = {&values, begin * sizeof(T), (part_ranges.back().end - begin) * sizeof(T)};
    part.first_range = static_cast<std::uint32_t>(ranges_);
    part.first_sum = static_cast<std::uint32_t>(sums_);
    for (const NormRange& range : part_ranges) {
      const std::size_t count = range.end - range.begin, chunks = reduce_scratch(count);
      for (std::size_t number : {sums_, chunks, range.begin - begin, count})
        table.push_back(static_cast<std::uint32_t>(number));
      part.sums += static_cast<std::uint32_t>(chunks);
      sums_ += chunks;
      ++ranges_;
    }
    groups_ += groups_of(part.sums);
    parts_.push_back(part);
  }
  if (sums_ == 0) return;
  sums_buffer_ = device.make_buffer(2 * sums_ * sizeof(T), vulkan::BufferUse::device);
  table_ = device.make_buffer(table.size() * sizeof(std::uint32_t), vulkan::BufferUse::device);
  scale_ = device.make_buffer(sizeof(T), vulkan::BufferUse::device);
  done_ = device.make_buffer(sizeof(std::uint32_t), vulkan::BufferUse::device);
  device.zero(done_);
  device.write(table_, 0, std::as_bytes(std::span(table)));
}

template <class T>
vulkan::Binding NormClip<T>::scale() const {
  return {&scale_, 0, sizeof(T)};
}

template <class T>
void NormClip<T>::record(vulkan::Commands& commands, const vulkan::Binding& samples) const {
  if (sums_ == 0) return;
  const auto whole = [](const vulkan::DeviceBuffer& b) { return vulkan::Binding{&b, 0, b.bytes()}; };
  for (const Part& part : parts_) {
    const std::uint32_t push[] = {part.first_range,
                                  part.first_sum,
                                  part.sums,
                                  static_cast<std::uint32_t>(ranges_),
                                  static_cast<std::uint32_t>(sums_),
                                  static_cast<std::uint32_t>(groups_)};
    const vulkan::Binding bindings[] = {part.values, whole(table_), whole(sums_buffer_),
                                        samples,     scale(),       whole(done_)};
    commands.dispatch({&device_.kernel(shader_source<T>(Shader::clip), {}), bindings, std::as_bytes(std::span(push)),
                       groups_of(part.sums), "clip"});
    commands.barrier();
  }
}

#define GRADLOOM_INSTANTIATE(T)                                                                                    \
  template void record_update<T>(vulkan::Device&, vulkan::Commands&, const DeviceUpdatePass&, const std::string&); \
  template class NormClip<T>;
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::kernels
