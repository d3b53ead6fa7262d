// The same symbol for a build without Vulkan.
#include "tests/support/sloppy_shaders.h"

namespace gradloom::test {

vulkan::KernelSource sloppy_shader(const vulkan::KernelSource&) { return {}; }

}  // namespace gradloom::test
