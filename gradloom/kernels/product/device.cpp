#include "gradloom/kernels/product/device.h"

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/shader/shaders.h"

namespace gradloom::kernels::product {

namespace {

struct Push {
  using uint = std::uint32_t;
#include "gradloom/kernels/product/push.inc"
};

Push push_of(const LayerNodes& shape, std::size_t batch) {
  Push push{};
  push.batch = static_cast<std::uint32_t>(batch);
  push.nodes = static_cast<std::uint32_t>(shape.nodes);
  push.products = static_cast<std::uint32_t>(shape.products);
  return push;
}

}  // namespace

template <class T>
void record_forward(vulkan::Device& device, vulkan::Commands& commands, const LayerNodes& shape, std::size_t batch,
                    vulkan::Binding sums, vulkan::Binding nodes, const std::string& label) {
  const Push push = push_of(shape, batch);
  const vulkan::Binding bindings[] = {sums, nodes};
  commands.dispatch({&device.kernel(shader_source<T>(Shader::product_forward), {}), bindings,
                     std::as_bytes(std::span(&push, 1)), divide_up(batch * padded(shape.nodes), kShaderGroup), label});
}

template <class T>
void record_backward(vulkan::Device& device, vulkan::Commands& commands, const LayerNodes& shape, std::size_t batch,
                     vulkan::Binding sums, vulkan::Binding dl_dnodes, vulkan::Binding dl_dsums,
                     const std::string& label) {
  const Push push = push_of(shape, batch);
  const vulkan::Binding bindings[] = {sums, dl_dnodes, dl_dsums};
  commands.dispatch({&device.kernel(shader_source<T>(Shader::product_backward), {}), bindings,
                     std::as_bytes(std::span(&push, 1)), divide_up(batch * padded(shape.sums()), kShaderGroup), label});
}

GRADLOOM_INSTANTIATE(record_forward);
GRADLOOM_INSTANTIATE(record_backward);

}  // namespace gradloom::kernels::product
