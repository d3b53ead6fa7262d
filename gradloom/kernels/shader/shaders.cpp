#include "gradloom/kernels/shader/shaders.h"

#include <type_traits>

namespace gradloom::kernels {
namespace {

// The build turns each shader into a list of words.
constexpr std::uint32_t kForward32[] =
#include <gradloom_shaders/spline_forward.f32.inc>
    ;
constexpr std::uint32_t kForward64[] =
#include <gradloom_shaders/spline_forward.f64.inc>
    ;
constexpr std::uint32_t kWeightGradient32[] =
#include <gradloom_shaders/spline_weight_gradient.f32.inc>
    ;
constexpr std::uint32_t kInputGradient32[] =
#include <gradloom_shaders/spline_input_gradient.f32.inc>
    ;
constexpr std::uint32_t kWeightGradient64[] =
#include <gradloom_shaders/spline_weight_gradient.f64.inc>
    ;
constexpr std::uint32_t kInputGradient64[] =
#include <gradloom_shaders/spline_input_gradient.f64.inc>
    ;
constexpr std::uint32_t kLoss32[] =
#include <gradloom_shaders/loss_loss.f32.inc>
    ;
constexpr std::uint32_t kLoss64[] =
#include <gradloom_shaders/loss_loss.f64.inc>
    ;
constexpr std::uint32_t kUpdate32[] =
#include <gradloom_shaders/optimizer_update.f32.inc>
    ;
constexpr std::uint32_t kUpdate64[] =
#include <gradloom_shaders/optimizer_update.f64.inc>
    ;
constexpr std::uint32_t kHalf32[] =
#include <gradloom_shaders/compress_half.f32.inc>
    ;
constexpr std::uint32_t kHalf64[] =
#include <gradloom_shaders/compress_half.f64.inc>
    ;
constexpr std::uint32_t kTopK32[] =
#include <gradloom_shaders/compress_top_k.f32.inc>
    ;
constexpr std::uint32_t kTopK64[] =
#include <gradloom_shaders/compress_top_k.f64.inc>
    ;

}  // namespace

template <class T>
vulkan::KernelSource shader_source(Shader shader) {
  constexpr bool single = std::is_same_v<T, float>;
  using Words = std::span<const std::uint32_t>;
  const auto pick = [](Words a, Words b) { return single ? a : b; };
  switch (shader) {
    case Shader::spline_forward:
      return {"spline forward", pick(kForward32, kForward64), 4, 84};
    case Shader::spline_weight_gradient:
      return {"spline weight gradient", pick(kWeightGradient32, kWeightGradient64), 6, 84};
    case Shader::spline_input_gradient:
      return {"spline input gradient", pick(kInputGradient32, kInputGradient64), 5, 84};
    case Shader::loss:
      return {"loss", pick(kLoss32, kLoss64), 7, 48};
    case Shader::update:
      return {"optimizer", pick(kUpdate32, kUpdate64), 7, 16};
    case Shader::compress_half:
      return {"16 bits", pick(kHalf32, kHalf64), 2, 4};
    case Shader::compress_top_k:
      break;
  }
  return {"top-k", pick(kTopK32, kTopK64), 4, 12};
}

template vulkan::KernelSource shader_source<float>(Shader);
template vulkan::KernelSource shader_source<double>(Shader);

}  // namespace gradloom::kernels
