#include <algorithm>
#include <cstring>

#include "gradloom/exec/vulkan/internal.h"

namespace gradloom::vulkan {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

VKAPI_ATTR VkBool32 VKAPI_CALL receive(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                       const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  const auto& on_message = static_cast<Instance*>(user)->on_message;
  if (on_message) on_message(data->pMessage ? data->pMessage : "");
  return VK_FALSE;
}

bool has_validation_layer() {
  std::uint32_t count = 0;
  if (vkEnumerateInstanceLayerProperties(&count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkLayerProperties> layers(count);
  if (vkEnumerateInstanceLayerProperties(&count, layers.data()) < VK_SUCCESS) return false;
  return std::any_of(layers.begin(), layers.begin() + count, [](const VkLayerProperties& layer) {
    return std::strcmp(layer.layerName, kValidationLayer) == 0;
  });
}

DeviceKind kind_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return DeviceKind::discrete;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return DeviceKind::integrated;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return DeviceKind::virtual_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return DeviceKind::software;
    default:
      return DeviceKind::other;
  }
}

}  // namespace

void check(VkResult result, const char* what) {
  if (result >= VK_SUCCESS) return;
  const std::string where = std::string(what) + " failed (VkResult " + std::to_string(result) + ")";
  switch (result) {
    case VK_ERROR_DEVICE_LOST:
      throw Exception(ErrorCode::device_lost, "the device was lost: " + where);
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      throw Exception(ErrorCode::out_of_memory, "not enough memory: " + where);
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
      throw Exception(ErrorCode::device_memory, "the device has no memory left: " + where);
    default:
      throw Exception(ErrorCode::unsuitable_device, "the device refused: " + where);
  }
}

Instance::~Instance() {
  if (messenger) {
    const auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(handle, "vkDestroyDebugUtilsMessengerEXT"));
    if (destroy) destroy(handle, messenger, nullptr);
  }
  if (handle) vkDestroyInstance(handle, nullptr);
}

Result<std::unique_ptr<Instance>> make_instance(Validation validation,
                                                std::function<void(const std::string&)> on_message) {
  if (auto loaded = load_api(); !loaded) return loaded.error();
  auto instance = std::make_unique<Instance>();
  instance->on_message = std::move(on_message);
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "gradloom";
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;

  const VkValidationFeatureEnableEXT enabled[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = enabled;
  VkDebugUtilsMessengerCreateInfoEXT messages{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messages.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
  messages.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messages.pfnUserCallback = receive;
  messages.pUserData = instance.get();
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  if (validation == Validation::on) {
    if (!has_validation_layer())
      return Error{ErrorCode::unsupported, "validation was requested, but the validation layer is not installed"};
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidationLayer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = extensions;
  }
  const VkResult result = vkCreateInstance(&info, nullptr, &instance->handle);
  if (result != VK_SUCCESS)
    return Error{ErrorCode::missing_device, result == VK_ERROR_INCOMPATIBLE_DRIVER
                                                ? std::string("no Vulkan driver is installed")
                                                : "Vulkan cannot be used (VkResult " + std::to_string(result) + ")"};
  if (validation == Validation::on) {
    const auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(instance->handle, "vkCreateDebugUtilsMessengerEXT"));
    if (!create || create(instance->handle, &messages, nullptr, &instance->messenger) != VK_SUCCESS)
      return Error{ErrorCode::unsupported, "the validation layer does not report messages"};
  }
  return instance;
}

std::vector<VkPhysicalDevice> physical_devices(const Instance& instance) {
  std::uint32_t count = 0;
  if (vkEnumeratePhysicalDevices(instance.handle, &count, nullptr) < VK_SUCCESS) return {};
  std::vector<VkPhysicalDevice> devices(count);
  if (vkEnumeratePhysicalDevices(instance.handle, &count, devices.data()) < VK_SUCCESS) return {};
  devices.resize(count);
  return devices;
}

DeviceInfo describe(VkPhysicalDevice device, unsigned number) {
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceFloatControlsProperties controls{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
  controls.pNext = &driver;
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  subgroup.pNext = &controls;
  VkPhysicalDeviceMaintenance3Properties sizes{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  sizes.pNext = &subgroup;
  VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceProperties basic{};
  vkGetPhysicalDeviceProperties(device, &basic);
  const bool modern = basic.apiVersion >= VK_API_VERSION_1_2;
  if (modern) {
    all.pNext = &sizes;
    vkGetPhysicalDeviceProperties2(device, &all);
  }
  VkPhysicalDeviceFeatures features{};
  vkGetPhysicalDeviceFeatures(device, &features);
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(device, &memory);
  const VkPhysicalDeviceLimits& limits = basic.limits;

  DeviceInfo info;
  info.number = number;
  info.name = basic.deviceName;
  info.driver = modern ? std::string(driver.driverName) + " " + driver.driverInfo : std::string();
  info.api = std::to_string(VK_API_VERSION_MAJOR(basic.apiVersion)) + "." +
             std::to_string(VK_API_VERSION_MINOR(basic.apiVersion)) + "." +
             std::to_string(VK_API_VERSION_PATCH(basic.apiVersion));
  info.kind = kind_of(basic.deviceType);
  for (std::uint32_t h = 0; h < memory.memoryHeapCount; ++h)
    if (memory.memoryHeaps[h].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      info.memory_bytes = std::max<std::uint64_t>(info.memory_bytes, memory.memoryHeaps[h].size);
  info.max_allocation = modern ? sizes.maxMemoryAllocationSize : std::uint64_t{1} << 30;
  info.max_buffer_range = limits.maxStorageBufferRange;
  std::copy_n(limits.maxComputeWorkGroupCount, 3, info.max_groups.begin());
  info.max_group_size = limits.maxComputeWorkGroupInvocations;
  info.max_bindings = limits.maxPerStageDescriptorStorageBuffers;
  info.shared_bytes = limits.maxComputeSharedMemorySize;
  info.push_bytes = limits.maxPushConstantsSize;
  info.subgroup = modern ? subgroup.subgroupSize : 0;
  info.shuffles = modern && (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                  (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT);
  info.offset_alignment = static_cast<std::uint32_t>(limits.minStorageBufferOffsetAlignment);
  info.float64 = features.shaderFloat64;
  info.timestamps = limits.timestampComputeAndGraphics;
  info.nanoseconds_per_tick = static_cast<double>(limits.timestampPeriod);
  if (modern) {
    info.controls32 = {
        controls.shaderRoundingModeRTEFloat32 == VK_TRUE, controls.shaderDenormFlushToZeroFloat32 == VK_TRUE,
        controls.shaderDenormPreserveFloat32 == VK_TRUE, controls.shaderSignedZeroInfNanPreserveFloat32 == VK_TRUE};
    info.controls64 = {
        controls.shaderRoundingModeRTEFloat64 == VK_TRUE, controls.shaderDenormFlushToZeroFloat64 == VK_TRUE,
        controls.shaderDenormPreserveFloat64 == VK_TRUE, controls.shaderSignedZeroInfNanPreserveFloat64 == VK_TRUE};
  }
  return info;
}

Result<std::vector<DeviceInfo>> list_devices() {
  auto instance = make_instance(Validation::off, {});
  if (!instance) {
    if (instance.error().code == ErrorCode::missing_device) return std::vector<DeviceInfo>{};
    return instance.error();
  }
  std::vector<DeviceInfo> found;
  for (VkPhysicalDevice device : physical_devices(**instance))
    found.push_back(describe(device, static_cast<unsigned>(found.size())));
  return found;
}

}  // namespace gradloom::vulkan
