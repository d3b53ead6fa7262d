// The compute shaders as they were built: SPIR-V of every .comp file beside its kernel, for float and double.
#pragma once

#include "gradloom/exec/vulkan/device.h"

namespace gradloom::kernels {

// One for every .comp file (cmake/Shaders.cmake).
enum class Shader {
#define GRADLOOM_SHADER(name) name,
#include <gradloom_shaders/list.inc>
#undef GRADLOOM_SHADER
};
inline constexpr Shader kAllShaders[] = {
#define GRADLOOM_SHADER(name) Shader::name,
#include <gradloom_shaders/list.inc>
#undef GRADLOOM_SHADER
};

// T is float or double. Without Vulkan in the build, the module is empty.
template <class T>
vulkan::KernelSource shader_source(Shader shader);

// Invocations of a workgroup, in every shader that does not choose.
inline constexpr std::uint64_t kShaderGroup = 64;

}  // namespace gradloom::kernels
