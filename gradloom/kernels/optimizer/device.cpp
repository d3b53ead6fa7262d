#include "gradloom/kernels/optimizer/device.h"

#include "gradloom/base/error.h"
#include "gradloom/base/rounding.h"
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/shader/shaders.h"
#include "gradloom/kernels/shader/step.h"

namespace gradloom::kernels::optimizer {

namespace {
struct Push {
  using uint = std::uint32_t;
#include "gradloom/kernels/optimizer/push.inc"
};
}  // namespace

template <class T>
void fill_head(std::byte* head, const Step<T>& step) {
#define GRADLOOM_STEP_SCALAR(number, name) set_step_scalar(head, StepScalar::name, step.name);
#include "gradloom/kernels/shader/step_scalars.inc"
}

template <class T>
void record_update(vulkan::Device& device, vulkan::Commands& commands, const DevicePass& pass,
                   const std::string& label) {
  if (pass.count % 4 != 0 || pass.decay_begin % 4 != 0 || pass.decay_end % 4 != 0)
    throw_invalid("a range of parameters on a device is not a multiple of four");
  // A software device's time follows its loads: more elements share the constants there.
  const std::uint32_t quads = device.info().kind == vulkan::DeviceKind::software ? 4 : 1;
  const std::uint32_t constants[] = {static_cast<std::uint32_t>(pass.rule), quads};
  const auto quad = [](std::size_t element) { return static_cast<std::uint32_t>(element / 4); };
  const Push push{quad(pass.count), pass.clipped ? 1u : 0u, quad(pass.decay_begin), quad(pass.decay_end)};
  const vulkan::Binding bindings[] = {pass.parameters, pass.gradient, pass.first, pass.second,
                                      pass.samples,    pass.status,   pass.norm};
  const std::uint64_t owned = 4 * kShaderGroup * quads;
  commands.dispatch({&device.kernel(shader_source<T>(Shader::optimizer_update), constants), bindings,
                     std::as_bytes(std::span(&push, 1)), divide_up(pass.count, owned), label});
}

template <class T>
vulkan::DeviceBuffer make_norm(vulkan::Device& device, std::size_t shares) {
  // Two whole numbers, the sum with the room of a double, then the shares.
  vulkan::DeviceBuffer norm = device.make_buffer(16 + shares * sizeof(T), vulkan::BufferUse::device);
  device.zero(norm);
  return norm;
}

bool norm_is_finite(vulkan::Device& device, const vulkan::DeviceBuffer& norm) {
  std::uint32_t head[2];
  device.read(norm, 0, std::as_writable_bytes(std::span(head)));
  return head[1] == 0;
}

GRADLOOM_INSTANTIATE(fill_head);
GRADLOOM_INSTANTIATE(record_update);
GRADLOOM_INSTANTIATE(make_norm);

}  // namespace gradloom::kernels::optimizer
