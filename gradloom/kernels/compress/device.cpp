#include "gradloom/kernels/compress/device.h"

#include <cstdint>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/shader/shaders.h"

namespace gradloom::kernels::compress {

template <class T>
void record_compress(vulkan::Device& device, vulkan::Commands& commands, const DeviceCompressionPass& pass) {
  const auto count = static_cast<std::uint32_t>(pass.count);
  if (pass.options.kind == Compression::half) {
    const std::uint32_t push[] = {count};
    const vulkan::Binding bindings[] = {pass.gradient, pass.packed};
    commands.dispatch({&device.kernel(shader_source<T>(Shader::compress_half), {}), bindings,
                       std::as_bytes(std::span(push)), divide_up(divide_up(pass.count, 2), kShaderGroup), "compress"});
    return;
  }
  const std::size_t chunks = divide_up(pass.count, kCompressionChunk);
  const std::size_t kept = kept_of_chunk(pass.options.keep);
  const std::uint32_t push[] = {count, static_cast<std::uint32_t>(kept),
                                static_cast<std::uint32_t>(chunks * kept * sizeof(T) / 4)};
  const vulkan::Binding bindings[] = {pass.gradient, pass.residual, pass.packed, pass.packed};
  commands.dispatch({&device.kernel(shader_source<T>(Shader::compress_top_k), {}), bindings,
                     std::as_bytes(std::span(push)), chunks, "compress"});
}

GRADLOOM_INSTANTIATE(record_compress);

}  // namespace gradloom::kernels::compress
