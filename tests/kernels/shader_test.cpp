#include <gtest/gtest.h>

#include "gradloom/exec/vulkan/spirv.h"
#include "gradloom/kernels/shader/shaders.h"

namespace gradloom::kernels {
namespace {

// A device's compiler may fuse a * b + c wherever the shader does not forbid it; then its bits would differ.
TEST(Shaders, LeaveNoOperationToBeFused) {
  for (const Shader shader : kAllShaders)
    for (const auto& source : {shader_source<float>(shader), shader_source<double>(shader)}) {
      if (source.spirv.empty()) GTEST_SKIP() << "this build has no GPU backend";
      const auto found = vulkan::count_contraction(source.spirv);
      const bool on_bits = shader == Shader::compress_half;
      EXPECT_TRUE(found.operations > 0 || on_bits) << source.name;
      EXPECT_EQ(found.allowed, 0u) << source.name << ", of " << found.operations;
    }
}

TEST(Shaders, UseTheScalarTheyAreBuiltFor) {
  for (const Shader shader : kAllShaders) {
    if (shader_source<float>(shader).spirv.empty()) GTEST_SKIP() << "this build has no GPU backend";
    EXPECT_FALSE(vulkan::uses_float64(shader_source<float>(shader).spirv));
    EXPECT_TRUE(vulkan::uses_float64(shader_source<double>(shader).spirv));
  }
}

}  // namespace
}  // namespace gradloom::kernels
