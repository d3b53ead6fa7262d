// Small changes to SPIR-V that GLSL cannot express: the float controls that a device offers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gradloom/exec/vulkan/info.h"

namespace gradloom::vulkan {

// The same module, which also asks for what `controls` declare: rounding to nearest even, flushed subnormals, and
// infinities and NaN that stay, for the scalar of `width` bits. A module without an entry point comes back as it was.
std::vector<std::uint32_t> with_float_controls(std::span<const std::uint32_t> spirv, const FloatControls& controls,
                                               unsigned width);

// Multiplications, additions, subtractions of floating-point numbers in a module, and how many of them the compiler of
// a device may fuse (they lack the decoration NoContraction). For tests.
struct Contraction {
  std::size_t operations = 0, allowed = 0;
};
Contraction count_contraction(std::span<const std::uint32_t> spirv);

// Whether a module computes with 64-bit floating-point numbers.
bool uses_float64(std::span<const std::uint32_t> spirv);

}  // namespace gradloom::vulkan
