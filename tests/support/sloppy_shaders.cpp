#include "tests/support/sloppy_shaders.h"

#include "gradloom/exec/vulkan/spirv.h"

namespace gradloom::test {
namespace {
#include <gradloom_sloppy_shaders/words.inc>
}  // namespace

vulkan::KernelSource sloppy_shader(const vulkan::KernelSource& source) {
#define GRADLOOM_SHADER(shader)                                                              \
  if (source.name == #shader) {                                                              \
    if (vulkan::uses_float64(source.spirv)) return {source.name + ", sloppy", shader##_f64}; \
    return {source.name + ", sloppy", shader##_f32};                                         \
  }
#include <gradloom_sloppy_shaders/list.inc>
#undef GRADLOOM_SHADER
  throw Exception(ErrorCode::not_found, "no sloppy shader stands in for " + source.name);
}

}  // namespace gradloom::test
