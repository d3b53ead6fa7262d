// The compute shaders as they were built: SPIR-V of every .comp file beside its kernel, for float and double.
#pragma once

#include "gradloom/exec/vulkan/device.h"

namespace gradloom::kernels {

enum class Shader {
  spline_forward,
  spline_weight_gradient,
  spline_input_gradient,
  loss,
  update,
  compress_half,
  compress_top_k,
};
inline constexpr Shader kAllShaders[] = {
    Shader::spline_forward, Shader::spline_weight_gradient, Shader::spline_input_gradient, Shader::loss,
    Shader::update,         Shader::compress_half,          Shader::compress_top_k};

// T is float or double. Without Vulkan in the build, the module is empty.
template <class T>
vulkan::KernelSource shader_source(Shader shader);

// Invocations of a workgroup, in every shader that does not choose.
inline constexpr std::uint64_t kShaderGroup = 64;

}  // namespace gradloom::kernels
