// The shaders once more, with approximations that are several ulp off where exact.glsl corrects them, and without any
// division or root of the device. Results must not change.
#pragma once

#include "gradloom/exec/vulkan/device.h"

namespace gradloom::test {

// The one that stands in for `source`. Without Vulkan in the build there is none: an empty module.
vulkan::KernelSource sloppy_shader(const vulkan::KernelSource& source);

}  // namespace gradloom::test
