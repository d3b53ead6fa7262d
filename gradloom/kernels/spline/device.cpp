#include "gradloom/kernels/spline/device.h"

#include "gradloom/base/error.h"
#include "gradloom/kernels/shader/shaders.h"

namespace gradloom::kernels::spline {
namespace {

// The push constants of basis.glsl.
struct LayerPush {
  std::uint32_t batch, in_width, out_width, rows, grid, flags, x_stride, bias_at, lo_at, hi_at, inverse_step_at,
      extended_at, inverse_at, mean_at, scale_at, weight_groups, bias_groups, input_groups, below_stride;
};

constexpr std::uint32_t kBase = 1, kBias = 2, kFreeKnots = 4, kNormalise = 8, kAccumulate = 16, kScaleInput = 32;
constexpr unsigned kOutsideShift = 8;

std::uint32_t narrow(std::size_t n) { return static_cast<std::uint32_t>(n); }

LayerPush push_of(const DeviceLayer& layer, const DevicePass& pass) {
  const Shape& s = layer.shape;
  if (pass.batch == 0) throw Exception(ErrorCode::invalid_input, "a batch of 0 samples was given to the device");
  LayerPush p{};
  p.batch = narrow(pass.batch);
  p.in_width = narrow(s.in);
  p.out_width = narrow(s.out);
  p.rows = narrow(s.rows());
  p.grid = s.grid;
  p.flags = (s.base ? kBase : 0) | (s.bias ? kBias : 0) | (s.knots == Knots::free ? kFreeKnots : 0) |
            (layer.normalise ? kNormalise : 0) | static_cast<std::uint32_t>(s.outside) << kOutsideShift;
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

std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// Samples that share the weights which an invocation of forward loads. More loads are saved, the fewer rows there are
// in comparison; but a device wants many invocations.
std::uint32_t samples_of_invocation(const vulkan::DeviceInfo& device, const Shape& s, std::size_t batch) {
  constexpr std::size_t kBusy = 1 << 14;  // invocations that keep a device busy
  std::uint32_t samples = 8;
  if (s.grid + s.degree > samples * (s.degree + 1)) return 1;
  if (device.kind != vulkan::DeviceKind::software)
    while (samples > 1 && divide_up(batch, samples) * (s.out_padded() / 4) < kBusy) samples /= 2;
  return samples;
}

// Inputs whose weights a group of backward owns: as many as fit.
template <class T>
std::uint32_t inputs_of_group(const vulkan::DeviceInfo& device, const Shape& s) {
  std::uint32_t inputs = 4;
  while (inputs > 1 && backward_shared_bytes<T>(s, inputs) > device.shared_bytes) inputs /= 2;
  if (backward_shared_bytes<T>(s, inputs) > device.shared_bytes)
    throw Exception(ErrorCode::unsuitable_device,
                    "degree " + std::to_string(s.degree) + " needs " + std::to_string(backward_shared_bytes<T>(s, 1)) +
                        " bytes of workgroup memory; " + device.name + " has " + std::to_string(device.shared_bytes));
  return inputs;
}

}  // namespace

template <class T>
void record_forward(vulkan::Device& device, vulkan::Commands& commands, const DeviceLayer& layer,
                    const DevicePass& pass, const std::string& label) {
  const LayerPush push = push_of(layer, pass);
  const std::size_t quads = layer.shape.out_padded() / 4;
  // Few outputs: more samples in a group instead.
  const std::uint32_t tile = quads <= 4 ? 4 : 16;
  const std::uint32_t samples = samples_of_invocation(device.info(), layer.shape, pass.batch);
  const std::uint32_t constants[] = {layer.shape.degree, tile, samples};
  const vulkan::Binding bindings[] = {pass.parameters, pass.buffers, pass.x, pass.y};
  commands.dispatch({&device.kernel(shader_source<T>(Shader::spline_forward), constants), bindings,
                     std::as_bytes(std::span(&push, 1)),
                     divide_up(pass.batch, kShaderGroup / tile * samples) * divide_up(quads, tile), label});
}

template <class T>
void record_backward(vulkan::Device& device, vulkan::Commands& commands, const DeviceLayer& layer,
                     const DevicePass& pass, const DeviceGradients& gradients, const std::string& label) {
  LayerPush push = push_of(layer, pass);
  const Shape& s = layer.shape;
  const std::uint32_t inputs = inputs_of_group<T>(device.info(), s);
  const std::size_t quads = s.out_padded() / 4;
  if (gradients.weight) push.weight_groups = narrow(divide_up(s.in, inputs) * divide_up(quads, kShaderGroup / inputs));
  if (gradients.bias && s.bias) push.bias_groups = narrow(divide_up(s.out_padded(), kShaderGroup));
  push.below_stride = narrow(gradients.dl_dx_stride);
  push.input_groups = narrow(gradients.dl_dx_stride * divide_up(pass.batch, kShaderGroup));
  if (gradients.mode == GradientMode::accumulate) push.flags |= kAccumulate;
  if (layer.normalise) push.flags |= kScaleInput;
  const std::uint32_t constants[] = {s.degree, inputs};
  const vulkan::Binding bindings[] = {pass.parameters, pass.buffers,       pass.x,
                                      pass.y,          gradients.gradient, gradients.dl_dx};
  commands.dispatch({&device.kernel(shader_source<T>(Shader::spline_backward), constants), bindings,
                     std::as_bytes(std::span(&push, 1)),
                     std::uint64_t{push.weight_groups} + push.bias_groups + push.input_groups, label});
}

#define GRADLOOM_INSTANTIATE(T)                                                                               \
  template void record_forward<T>(vulkan::Device&, vulkan::Commands&, const DeviceLayer&, const DevicePass&,  \
                                  const std::string&);                                                        \
  template void record_backward<T>(vulkan::Device&, vulkan::Commands&, const DeviceLayer&, const DevicePass&, \
                                   const DeviceGradients&, const std::string&);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::kernels::spline
