// The same symbols for a build without Vulkan, in which no device can be opened to run them.
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/shader/shaders.h"

namespace gradloom::kernels {

template <class T>
vulkan::KernelSource shader_source(Shader) {
  return {};
}

GRADLOOM_INSTANTIATE(shader_source);

}  // namespace gradloom::kernels
