// What the sources of this folder share: Vulkan handles behind the public classes.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gradloom/exec/vulkan/api.h"
#include "gradloom/exec/vulkan/device.h"
#include "gradloom/exec/vulkan/memory.h"

namespace gradloom::vulkan {

// Throws Exception with the code that fits a failed call; `what` names it.
void check(VkResult result, const char* what);

// An instance, with the validation layer's messages sent to the callback when validation is on.
struct Instance {
  VkInstance handle = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  std::function<void(const std::string&)> on_message;

  Instance() = default;
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
};

Result<std::unique_ptr<Instance>> make_instance(Validation validation,
                                                std::function<void(const std::string&)> on_message);
std::vector<VkPhysicalDevice> physical_devices(const Instance& instance);
DeviceInfo describe(VkPhysicalDevice device, unsigned number);

// Whether fma() rounds once, in each scalar that the device has: it is tried, in one submit for each.
bool fma_rounds_once(Device& device);

struct Kernel {
  std::string name;
  unsigned bindings = 0, push_bytes = 0;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
};

struct Device::Impl {
  std::unique_ptr<Instance> instance;
  DeviceInfo info;
  Faults faults;
  DeviceCounters counters;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t family = 0;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkPhysicalDeviceMemoryProperties memory{};
  std::unique_ptr<MemoryPool> memory_pool;
  std::map<std::pair<const std::uint32_t*, std::vector<std::uint32_t>>, Kernel> kernels;
  bool hangs = false;  // something did not end in time and may still run

  Impl() = default;
  ~Impl();
  void create();
  // Fills a kernel; what a failure leaves in it is for the caller to destroy.
  void build(Kernel& kernel, const KernelSource& source, std::span<const std::uint32_t> constants);
  void destroy(const Kernel& kernel);
  std::uint32_t memory_type(std::uint32_t allowed, BufferUse use) const;
};

struct DeviceBuffer::Impl {
  Device::Impl* owner = nullptr;
  VkBuffer buffer = VK_NULL_HANDLE;
  Piece piece;
  std::uint64_t bytes = 0;
  BufferUse use = BufferUse::device;
  ~Impl();
};

struct Commands::Impl {
  Device::Impl* owner = nullptr;
  VkCommandBuffer buffer = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  std::vector<VkDescriptorPool> descriptor_pools;
  VkQueryPool queries = VK_NULL_HANDLE;
  std::vector<std::string> labels;  // of timed dispatches
  DeviceCounters each;              // what one submit of this adds
  std::uint32_t barriers = 0;
  bool pending = false;
  ~Impl();
};

}  // namespace gradloom::vulkan
