// The same symbols for a build without Vulkan, in which no device can be opened to run them.
#include "gradloom/kernels/shader/shaders.h"

namespace gradloom::kernels {

template <class T>
vulkan::KernelSource shader_source(Shader) {
  return {};
}

template vulkan::KernelSource shader_source<float>(Shader);
template vulkan::KernelSource shader_source<double>(Shader);

}  // namespace gradloom::kernels
