#include "gradloom/kernels/loss/device.h"

#include <cstring>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/reduce/tree_sum.h"
#include "gradloom/kernels/shader/shaders.h"
#include "gradloom/kernels/shader/step.h"

namespace gradloom::kernels::loss {

namespace {
struct Push {
  using uint = std::uint32_t;
#include "gradloom/kernels/loss/push.inc"
};
}  // namespace

template <class T>
double fill_head(std::byte* head, const Options& options, const Wanted<T>& wanted, std::size_t out, std::size_t slot) {
  const double factor = normaliser(options, wanted, out);
  const auto first = static_cast<std::uint32_t>(slot);
  std::memcpy(head, &first, sizeof(first));
  set_step_scalar(head, StepScalar::loss_factor, static_cast<T>(options.scale * factor));
  set_step_scalar(head, StepScalar::huber_delta, static_cast<T>(options.huber_delta));
  return factor * options.scale;
}

template <class T>
void record(vulkan::Device& device, vulkan::Commands& commands, const DevicePass& pass) {
  const auto element = [](std::uint64_t bytes, std::size_t size) { return static_cast<std::uint32_t>(bytes / size); };
  Push push{};
  push.batch = static_cast<std::uint32_t>(pass.batch);
  push.out_width = static_cast<std::uint32_t>(pass.out);
  push.kind = static_cast<std::uint32_t>(pass.kind);
  push.result_kind = static_cast<std::uint32_t>(pass.result_kind);
  push.mean_at = pass.mean_at;
  push.std_at = pass.std_at;
  push.target_at = element(pass.target, sizeof(T));
  push.label_at = element(pass.label, sizeof(std::uint32_t));
  push.weight_at = element(pass.weight, sizeof(T));
  push.mask_at = element(pass.mask, sizeof(T));
  push.result_stride = static_cast<std::uint32_t>(pass.result_stride);
  push.groups = static_cast<std::uint32_t>(device_groups(pass.batch));
  const vulkan::Binding bindings[] = {pass.v,      pass.buffers, pass.samples, pass.samples,
                                      pass.result, pass.losses,  pass.status};
  commands.dispatch({&device.kernel(shader_source<T>(Shader::loss), {}), bindings, std::as_bytes(std::span(&push, 1)),
                     push.groups, pass.result_kind == DeviceResult::output ? "output" : "loss"});
}

template <class T>
double sum_pairs(const T* pairs, std::size_t batch) {
  double levels[64] = {};
  const reduce::TreeSum<double> sum{.root = levels, .upper = levels + 1, .stride = 1};
  for (std::size_t g = 0; g < device_groups(batch); ++g) {
    const double own = static_cast<double>(pairs[2 * g]) + static_cast<double>(pairs[2 * g + 1]);
    reduce::add_leaf(sum, g, &own, 0, 1);
  }
  reduce::finish_levels(sum, device_groups(batch), 0, 1);
  return 0.0 + levels[0];
}

GRADLOOM_INSTANTIATE(fill_head);
GRADLOOM_INSTANTIATE(record);
GRADLOOM_INSTANTIATE(sum_pairs);

}  // namespace gradloom::kernels::loss
