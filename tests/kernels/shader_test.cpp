#include <gtest/gtest.h>

#include "gradloom/exec/vulkan/spirv.h"
#include "gradloom/kernels/shader/shaders.h"
#include "tests/support/sloppy_shaders.h"

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

// What exact.glsl corrects is all that a shader divides by itself: where that is replaced by something else, no
// division is left, and no root.
TEST(Shaders, DivideAndTakeRootsByExactGlslAlone) {
  for (const Shader shader : kAllShaders)
    for (const auto& source : {shader_source<float>(shader), shader_source<double>(shader)}) {
      if (source.spirv.empty()) GTEST_SKIP() << "this build has no GPU backend";
      const auto sloppy = test::sloppy_shader(source);
      EXPECT_EQ(vulkan::count_approximate(sloppy.spirv), 0u) << source.name;
      const bool divides = shader != Shader::compress_half && shader != Shader::compress_top_k &&
                           shader != Shader::reduce_tree && shader != Shader::product_forward &&
                           shader != Shader::product_backward;
      EXPECT_EQ(vulkan::count_approximate(source.spirv) > 0, divides) << source.name;
      EXPECT_EQ(vulkan::count_contraction(sloppy.spirv).allowed, 0u) << source.name;
    }
}

// Every fma() is one side of the choice that mul_add makes, against the same product and sum.
TEST(Shaders, FuseWhatMulAddSaysAndNothingElse) {
  for (const Shader shader : kAllShaders)
    for (const auto& source : {shader_source<float>(shader), shader_source<double>(shader)}) {
      if (source.spirv.empty()) GTEST_SKIP() << "this build has no GPU backend";
      const auto found = vulkan::count_fused(source.spirv);
      const bool sums_products = shader != Shader::compress_half && shader != Shader::compress_top_k &&
                                 shader != Shader::product_forward && shader != Shader::product_backward;
      EXPECT_EQ(found.all > 0, sums_products) << source.name;
      EXPECT_EQ(found.chosen, found.all) << source.name;
    }
}

TEST(Shaders, UseTheScalarTheyAreBuiltFor) {
  for (const Shader shader : kAllShaders) {
    if (shader_source<float>(shader).spirv.empty()) GTEST_SKIP() << "this build has no GPU backend";
    EXPECT_FALSE(vulkan::uses_float64(shader_source<float>(shader).spirv));
    EXPECT_TRUE(vulkan::uses_float64(shader_source<double>(shader).spirv));
  }
}

TEST(Shaders, SayWhatTheyBind) {
  if (shader_source<float>(Shader::loss).spirv.empty()) GTEST_SKIP() << "this build has no GPU backend";
  const auto needs = [](Shader shader) { return vulkan::shader_interface(shader_source<double>(shader).spirv); };
  EXPECT_EQ(needs(Shader::loss).bindings, 7u);
  EXPECT_EQ(needs(Shader::loss).push_bytes, 48u);
  EXPECT_EQ(needs(Shader::spline_weight_gradient).bindings, 6u);  // 0 is not among them
  EXPECT_EQ(needs(Shader::spline_weight_gradient).push_bytes, 100u);
  EXPECT_EQ(needs(Shader::reduce_tree).bindings, 5u);
  EXPECT_EQ(needs(Shader::reduce_tree).push_bytes, 44u);
  EXPECT_EQ(needs(Shader::product_backward).bindings, 3u);
  EXPECT_EQ(needs(Shader::product_backward).push_bytes, 12u);
  EXPECT_EQ(needs(Shader::compress_half).bindings, 2u);
  EXPECT_EQ(needs(Shader::compress_half).push_bytes, 4u);
}

}  // namespace
}  // namespace gradloom::kernels
