// The functions of Vulkan, found when the first device is asked for: a program starts on machines without Vulkan.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "gradloom/base/result.h"

// clang-format off
#define GRADLOOM_VULKAN_FUNCTIONS(X) \
  X(vkAllocateCommandBuffers) \
  X(vkAllocateDescriptorSets) \
  X(vkAllocateMemory) \
  X(vkBeginCommandBuffer) \
  X(vkBindBufferMemory) \
  X(vkCmdBindDescriptorSets) \
  X(vkCmdBindPipeline) \
  X(vkCmdCopyBuffer) \
  X(vkCmdDispatch) \
  X(vkCmdFillBuffer) \
  X(vkCmdPipelineBarrier) \
  X(vkCmdPushConstants) \
  X(vkCmdResetQueryPool) \
  X(vkCmdWriteTimestamp) \
  X(vkCreateBuffer) \
  X(vkCreateCommandPool) \
  X(vkCreateComputePipelines) \
  X(vkCreateDescriptorPool) \
  X(vkCreateDescriptorSetLayout) \
  X(vkCreateDevice) \
  X(vkCreateFence) \
  X(vkCreateInstance) \
  X(vkCreatePipelineLayout) \
  X(vkCreateQueryPool) \
  X(vkCreateShaderModule) \
  X(vkDestroyBuffer) \
  X(vkDestroyCommandPool) \
  X(vkDestroyDescriptorPool) \
  X(vkDestroyDescriptorSetLayout) \
  X(vkDestroyDevice) \
  X(vkDestroyFence) \
  X(vkDestroyInstance) \
  X(vkDestroyPipeline) \
  X(vkDestroyPipelineLayout) \
  X(vkDestroyQueryPool) \
  X(vkDestroyShaderModule) \
  X(vkDeviceWaitIdle) \
  X(vkEndCommandBuffer) \
  X(vkEnumerateInstanceLayerProperties) \
  X(vkEnumeratePhysicalDevices) \
  X(vkFreeCommandBuffers) \
  X(vkFreeMemory) \
  X(vkGetBufferMemoryRequirements) \
  X(vkGetDeviceQueue) \
  X(vkGetInstanceProcAddr) \
  X(vkGetPhysicalDeviceFeatures) \
  X(vkGetPhysicalDeviceMemoryProperties) \
  X(vkGetPhysicalDeviceProperties) \
  X(vkGetPhysicalDeviceProperties2) \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkGetQueryPoolResults) \
  X(vkMapMemory) \
  X(vkQueueSubmit) \
  X(vkResetFences) \
  X(vkUpdateDescriptorSets) \
  X(vkWaitForFences)
// clang-format on

namespace gradloom::vulkan {

// Null until load_api() has succeeded.
#define GRADLOOM_DECLARE(name) extern PFN_##name name;
GRADLOOM_VULKAN_FUNCTIONS(GRADLOOM_DECLARE)
#undef GRADLOOM_DECLARE

// Finds the functions, in the process itself where somebody has loaded Vulkan already, else in the system's loader
// library. The first call does the work, the others return its result; safe from any thread. Fails with
// missing_device.
Result<void> load_api();

}  // namespace gradloom::vulkan
