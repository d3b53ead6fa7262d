// What a module of SPIR-V asks for, and small changes to it that GLSL cannot express.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gradloom/exec/vulkan/info.h"

namespace gradloom::vulkan {

// The specialization constant by which a module chooses its arithmetic: shader/real.glsl.
inline constexpr std::uint32_t kFusedConstant = 20;

// The same module, which also asks for what `controls` declare: rounding to nearest even, flushed subnormals, and
// infinities and NaN that stay, for the scalar of `width` bits. A module without an entry point comes back as it was.
std::vector<std::uint32_t> with_float_controls(std::span<const std::uint32_t> spirv, const FloatControls& controls,
                                               unsigned width);

// The storage buffers of a module, at bindings 0 to `bindings` - 1, and the size of its push constants.
struct ShaderInterface {
  unsigned bindings = 0, push_bytes = 0;
};
ShaderInterface shader_interface(std::span<const std::uint32_t> spirv);

// Multiplications, additions, subtractions of floating-point numbers in a module, and how many of them the compiler of
// a device may fuse (they lack the decoration NoContraction). For tests.
struct Contraction {
  std::size_t operations = 0, allowed = 0;
};
Contraction count_contraction(std::span<const std::uint32_t> spirv);

// Fused operations in a module, and how many of them stand in a choice by kFusedConstant against the same product and
// sum, rounded one by one. For tests.
struct FusedOperations {
  std::size_t all = 0, chosen = 0;
};
FusedOperations count_fused(std::span<const std::uint32_t> spirv);

// Operations in a module that a device need not round correctly: divisions, roots, what else is built on them. Fused
// operations are not among them: a device that does not round them once does not run them. For tests.
std::size_t count_approximate(std::span<const std::uint32_t> spirv);

// Whether a module computes with 64-bit floating-point numbers.
bool uses_float64(std::span<const std::uint32_t> spirv);

}  // namespace gradloom::vulkan
