#include "gradloom/kernels/reduce/device.h"

#include "gradloom/base/error.h"
#include "gradloom/base/rounding.h"
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/shader/shaders.h"

namespace gradloom::kernels::reduce {
namespace {

using uint = std::uint32_t;
struct Push {
#include "gradloom/kernels/reduce/push.inc"
};

// A software device's time follows its groups: there, an invocation owns more.
uint quads_of(const vulkan::DeviceInfo& device) { return device.kind == vulkan::DeviceKind::software ? 4 : 1; }

uint quads(std::size_t elements) {
  if (elements % 4 != 0) throw_invalid("a range of a gradient on a device is not a multiple of four");
  return static_cast<uint>(elements / 4);
}

}  // namespace

std::size_t tree_groups(const vulkan::DeviceInfo& device, std::size_t count) {
  return divide_up(count, 4 * kShaderGroup * quads_of(device));
}

template <class T>
void record_tree(vulkan::Device& device, vulkan::Commands& commands, const DeviceTreePass& pass,
                 const std::string& label) {
  const bool norm = pass.norm.buffer != nullptr;
  const std::size_t groups = tree_groups(device.info(), pass.first_count + pass.second_count);
  Push push{};
  push.groups = static_cast<uint>(groups);
  push.first_quads = quads(pass.first_count);
  push.second_at = quads(pass.second_at);
  push.second_quads = quads(pass.second_count);
  push.leaves = static_cast<uint>(pass.leaves);
  push.first_leaf = static_cast<uint>(pass.first_leaf);
  push.leaf_stride = quads(pass.leaf_stride);
  push.level_stride = quads(pass.memory.stride);
  push.complete = pass.complete ? 1 : 0;
  push.first_share = static_cast<uint>(pass.first_share);
  push.shares = static_cast<uint>(pass.shares);
  const std::uint32_t constants[] = {quads_of(device.info()), norm ? 1u : 0u};
  const vulkan::Binding bindings[] = {pass.memory.leaves, pass.root, pass.memory.upper, pass.memory.step_head,
                                      norm ? pass.norm : pass.root};
  commands.dispatch({&device.kernel(shader_source<T>(Shader::reduce_tree), constants), bindings,
                     std::as_bytes(std::span(&push, 1)), groups, label});
}

GRADLOOM_INSTANTIATE(record_tree);

}  // namespace gradloom::kernels::reduce
