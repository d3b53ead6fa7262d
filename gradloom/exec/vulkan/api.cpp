#include "gradloom/exec/vulkan/api.h"

#include <dlfcn.h>

#include <string>

namespace gradloom::vulkan {

#define GRADLOOM_DEFINE(name) PFN_##name name = nullptr;
GRADLOOM_VULKAN_FUNCTIONS(GRADLOOM_DEFINE)
#undef GRADLOOM_DEFINE

namespace {

constexpr const char* kLoader = "libvulkan.so.1";

Result<void> find_functions() {
  // Never closed: drivers leave threads and handlers behind.
  void* const loader = dlopen(kLoader, RTLD_NOW | RTLD_LOCAL);
  if (!loader)
    return Error{ErrorCode::missing_device, std::string("Vulkan is not installed (") + kLoader +
                                                " cannot be loaded); it comes with a GPU's driver"};
  const char* missing = nullptr;
  const auto find = [&]<class F>(const char* name, F& function) {
    void* address = dlsym(RTLD_DEFAULT, name);
    if (!address) address = dlsym(loader, name);
    if (!address) missing = name;
    function = reinterpret_cast<F>(address);
  };
#define GRADLOOM_FIND(name) find(#name, name);
  GRADLOOM_VULKAN_FUNCTIONS(GRADLOOM_FIND)
#undef GRADLOOM_FIND
  if (missing)
    return Error{ErrorCode::missing_device, std::string("Vulkan is too old: ") + kLoader + " has no " + missing};
  return {};
}

}  // namespace

Result<void> load_api() {
  static const Result<void> result = find_functions();
  return result;
}

}  // namespace gradloom::vulkan
