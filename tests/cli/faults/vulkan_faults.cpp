// A library to be loaded before the Vulkan loader (LD_PRELOAD): passes calls on, but for the fault that the environment
// variable VULKAN_FAULT names: lose=N (submit N and all later ones report a lost device), memory=N (allocation N fails,
// and all later ones), limits (a shader sees few buffers).
#include <dlfcn.h>
#include <vulkan/vulkan.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

template <class F>
F next(const char* name) {
  // The program loads Vulkan for itself alone.
  static void* const loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<F>(dlsym(loader, name));
}

// The number behind "NAME=", or 0.
unsigned long fault(const char* name) {
  const char* wanted = std::getenv("VULKAN_FAULT");
  const std::size_t length = std::strlen(name);
  if (!wanted || std::strncmp(wanted, name, length) != 0) return 0;
  return wanted[length] == '=' ? std::strtoul(wanted + length + 1, nullptr, 10) : 1;
}

std::atomic<unsigned long> submits{0}, allocations{0};

}  // namespace

extern "C" {

VKAPI_ATTR VkResult VKAPI_CALL vkQueueSubmit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos,
                                             VkFence fence) {
  if (const unsigned long n = fault("lose"); n > 0 && ++submits >= n) return VK_ERROR_DEVICE_LOST;
  return next<PFN_vkQueueSubmit>("vkQueueSubmit")(queue, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info,
                                                const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
  if (const unsigned long n = fault("memory"); n > 0 && ++allocations >= n) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return next<PFN_vkAllocateMemory>("vkAllocateMemory")(device, info, callbacks, memory);
}

VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceProperties(VkPhysicalDevice device,
                                                         VkPhysicalDeviceProperties* properties) {
  next<PFN_vkGetPhysicalDeviceProperties>("vkGetPhysicalDeviceProperties")(device, properties);
  if (fault("limits") > 0) properties->limits.maxPerStageDescriptorStorageBuffers = 4;
}

}  // extern "C"
