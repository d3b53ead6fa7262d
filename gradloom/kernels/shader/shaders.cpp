#include "gradloom/kernels/shader/shaders.h"

#include <type_traits>

#include "gradloom/kernels/dispatch.h"

namespace gradloom::kernels {
namespace {

#include <gradloom_shaders/words.inc>

}  // namespace

template <class T>
vulkan::KernelSource shader_source(Shader shader) {
  switch (shader) {
#define GRADLOOM_SHADER(name)               \
  case Shader::name:                        \
    if constexpr (std::is_same_v<T, float>) \
      return {#name, name##_f32};           \
    else                                    \
      return {#name, name##_f64};
#include <gradloom_shaders/list.inc>
#undef GRADLOOM_SHADER
  }
  return {};
}

GRADLOOM_INSTANTIATE(shader_source);

}  // namespace gradloom::kernels
