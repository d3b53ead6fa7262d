#include "gradloom/kernels/loss/device.h"

#include "gradloom/kernels/shader/shaders.h"

namespace gradloom::kernels {

namespace {
struct LossPush {  // of loss.comp
  std::uint32_t batch, out_width, kind, flags, mean_at, std_at, target_at, label_at, weight_at, mask_at, result_stride,
      groups;
};
constexpr std::uint32_t kHasTarget = 1, kHasWeight = 2, kHasMask = 4;
}  // namespace

template <class T>
void record_loss(vulkan::Device& device, vulkan::Commands& commands, const DeviceLossPass& pass) {
  const auto element = [](std::uint64_t bytes, std::size_t size) { return static_cast<std::uint32_t>(bytes / size); };
  LossPush push{};
  push.batch = static_cast<std::uint32_t>(pass.batch);
  push.out_width = static_cast<std::uint32_t>(pass.out);
  push.kind = static_cast<std::uint32_t>(pass.kind);
  push.flags = (pass.target ? kHasTarget : 0) | (pass.weight ? kHasWeight : 0) | (pass.mask ? kHasMask : 0);
  push.mean_at = pass.mean_at;
  push.std_at = pass.std_at;
  push.target_at = element(pass.target, sizeof(T));
  push.label_at = element(pass.label, sizeof(std::uint32_t));
  push.weight_at = element(pass.weight, sizeof(T));
  push.mask_at = element(pass.mask, sizeof(T));
  push.result_stride = static_cast<std::uint32_t>(pass.result_stride);
  push.groups = static_cast<std::uint32_t>(loss_groups(pass.batch));
  const vulkan::Binding bindings[] = {pass.v,      pass.buffers, pass.samples, pass.samples,
                                      pass.result, pass.losses,  pass.status};
  commands.dispatch({&device.kernel(shader_source<T>(Shader::loss), {}), bindings, std::as_bytes(std::span(&push, 1)),
                     push.groups, pass.kind == DeviceLoss::predict ? "output" : "loss"});
}

template void record_loss<float>(vulkan::Device&, vulkan::Commands&, const DeviceLossPass&);
template void record_loss<double>(vulkan::Device&, vulkan::Commands&, const DeviceLossPass&);

}  // namespace gradloom::kernels
