#include "gradloom/exec/vulkan/device.h"

#include <algorithm>
#include <cstring>

#include "gradloom/exec/vulkan/internal.h"
#include "gradloom/exec/vulkan/spirv.h"

namespace gradloom::vulkan {

namespace {

constexpr std::uint32_t kNeededBindings = 8, kNeededGroup = 64, kNeededPush = 128;
constexpr std::uint64_t kStagingPart = std::uint64_t{4} << 20;

Result<void> check_limits(const DeviceInfo& info) {
  const auto lacks = [&](const std::string& what, std::uint64_t has, std::uint64_t needs) {
    return Error{ErrorCode::unsuitable_device, "the device " + info.name + " has " + what + " " + std::to_string(has) +
                                                   "; the kernels need " + std::to_string(needs)};
  };
  if (info.subgroup == 0)
    return Error{ErrorCode::unsuitable_device,
                 "the device " + info.name + " has Vulkan " + info.api + "; 1.2 is needed"};
  if (info.max_bindings < kNeededBindings)
    return lacks("storage buffers per shader:", info.max_bindings, kNeededBindings);
  if (info.max_group_size < kNeededGroup) return lacks("invocations per group:", info.max_group_size, kNeededGroup);
  if (info.push_bytes < kNeededPush) return lacks("bytes of push constants:", info.push_bytes, kNeededPush);
  if (!info.shuffles)
    return Error{ErrorCode::unsuitable_device, "the device " + info.name + " has no subgroup shuffles"};
  return {};
}

}  // namespace

Device::Impl::~Impl() {
  if (device) {
    vkDeviceWaitIdle(device);
    for (const auto& [key, kernel] : kernels) destroy(kernel);
    memory_pool.reset();
    if (pool) vkDestroyCommandPool(device, pool, nullptr);
    vkDestroyDevice(device, nullptr);
  }
}

void Device::Impl::create() {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  family = count;
  // A queue without graphics, where there is one: what the screen shows need not wait for it.
  for (const VkQueueFlags unwanted : {VkQueueFlags{VK_QUEUE_GRAPHICS_BIT}, VkQueueFlags{0}})
    for (std::uint32_t f = 0; f < count && family == count; ++f)
      if ((families[f].queueFlags & (VK_QUEUE_COMPUTE_BIT | unwanted)) == VK_QUEUE_COMPUTE_BIT) family = f;
  if (family == count)
    throw Exception(ErrorCode::unsuitable_device, "the device " + info.name + " has no compute queue");
  info.timestamps = families[family].timestampValidBits > 0;

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue_info{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue_info.queueFamilyIndex = family;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  VkPhysicalDeviceFeatures features{};
  features.shaderFloat64 = info.float64 ? VK_TRUE : VK_FALSE;
  VkDeviceCreateInfo create_info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  create_info.queueCreateInfoCount = 1;
  create_info.pQueueCreateInfos = &queue_info;
  create_info.pEnabledFeatures = &features;
  check(vkCreateDevice(physical, &create_info, nullptr, &device), "opening the device");
  vkGetDeviceQueue(device, family, 0, &queue);
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  memory_pool = std::make_unique<MemoryPool>(device, info.max_allocation, 0);
  VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool_info.queueFamilyIndex = family;
  check(vkCreateCommandPool(device, &pool_info, nullptr, &pool), "making a command pool");
}

std::uint32_t Device::Impl::memory_type(std::uint32_t allowed, BufferUse use) const {
  const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags wishes[][2] = {
      {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0}, {host, host}, {host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, host}};
  for (VkMemoryPropertyFlags wish : wishes[static_cast<int>(use)])
    for (std::uint32_t t = 0; t < memory.memoryTypeCount; ++t)
      if ((allowed >> t & 1u) && (memory.memoryTypes[t].propertyFlags & wish) == wish) return t;
  throw Exception(ErrorCode::unsuitable_device, "the device " + info.name + " has no memory of the needed kind");
}

Result<std::unique_ptr<Device>> Device::open(const DeviceOptions& options) try {
  auto instance = make_instance(options.validation, options.on_message);
  if (!instance)
    return Error{instance.error().code, "there is no device '" + options.name + "': " + instance.error().message};
  const std::vector<VkPhysicalDevice> physical = physical_devices(**instance);
  std::vector<DeviceInfo> infos;
  for (VkPhysicalDevice device : physical) infos.push_back(describe(device, static_cast<unsigned>(infos.size())));
  auto chosen = choose_device(infos, options.name);
  if (!chosen) return chosen.error();
  auto impl = std::make_unique<Impl>();
  impl->instance = std::move(*instance);
  impl->physical = physical[chosen->number];
  impl->info = *chosen;
  if (options.faults.max_buffer_range > 0) impl->info.max_buffer_range = options.faults.max_buffer_range;
  if (options.faults.max_bindings > 0) impl->info.max_bindings = options.faults.max_bindings;
  if (options.faults.as_discrete) impl->info.kind = DeviceKind::discrete;
  if (auto fits = check_limits(impl->info); !fits) return fits.error();
  impl->create();
  auto device = std::make_unique<Device>(std::move(impl));
  const bool fuses = options.faults.as_fused || fma_rounds_once(*device);
  if (options.arithmetic == Arithmetic::fused && !fuses)
    return Error{ErrorCode::unsuitable_device, "fused arithmetic was requested, but fma() of the device " +
                                                   device->info().name + " also rounds the product"};
  Impl& opened = device->impl();
  opened.info.arithmetic =
      options.arithmetic.value_or(fuses && available(Arithmetic::fused) ? Arithmetic::fused : Arithmetic::split);
  // Nobody asked for what this took, and faults are for those who do.
  opened.counters = {};
  opened.faults = options.faults;
  opened.memory_pool =
      std::make_unique<MemoryPool>(opened.device, opened.info.max_allocation, options.faults.memory_bytes);
  return device;
} catch (const Exception& e) {
  return e.error();
}

Device::Device(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Device::~Device() = default;

const DeviceInfo& Device::info() const { return impl_->info; }

const DeviceCounters& Device::counters() const {
  impl_->counters.memory_bytes = impl_->memory_pool->bytes();
  return impl_->counters;
}

std::uint32_t Device::group_row() const { return std::min(impl_->info.max_groups[0], 65535u); }

void Device::require_range(std::uint64_t bytes, const std::string& what) const {
  if (bytes > impl_->info.max_buffer_range)
    throw Exception(ErrorCode::unsuitable_device, what + " takes " + std::to_string(bytes) + " bytes; a shader of " +
                                                      impl_->info.name + " sees at most " +
                                                      std::to_string(impl_->info.max_buffer_range) + " at once");
}

DeviceBuffer::Impl::~Impl() {
  if (buffer) vkDestroyBuffer(owner->device, buffer, nullptr);
  owner->memory_pool->give_back(piece);
}

DeviceBuffer Device::make_buffer(std::uint64_t bytes, BufferUse use) {
  if (bytes == 0) return {};
  auto made = std::make_unique<DeviceBuffer::Impl>();
  made->owner = impl_.get();
  made->bytes = bytes;
  made->use = use;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               (use == BufferUse::device ? VK_BUFFER_USAGE_STORAGE_BUFFER_BIT : 0);
  check(vkCreateBuffer(impl_->device, &info, nullptr, &made->buffer), "making a buffer");
  VkMemoryRequirements needs{};
  vkGetBufferMemoryRequirements(impl_->device, made->buffer, &needs);
  const std::uint32_t type = impl_->memory_type(needs.memoryTypeBits, use);
  // Blocks are shared by all uses, and on some devices one kind of memory serves them all.
  const bool mapped = impl_->memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  made->piece = impl_->memory_pool->take(needs.size, std::max<VkDeviceSize>(needs.alignment, 256), type, mapped);
  check(vkBindBufferMemory(impl_->device, made->buffer, made->piece.memory, made->piece.offset), "binding memory");
  return DeviceBuffer(std::move(made));
}

DeviceBuffer::DeviceBuffer() = default;
DeviceBuffer::DeviceBuffer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeviceBuffer::DeviceBuffer(DeviceBuffer&&) noexcept = default;
DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&&) noexcept = default;
DeviceBuffer::~DeviceBuffer() = default;
std::uint64_t DeviceBuffer::bytes() const { return impl_ ? impl_->bytes : 0; }
std::byte* DeviceBuffer::host() const { return impl_ && impl_->use != BufferUse::device ? impl_->piece.host : nullptr; }

void Device::Impl::build(Kernel& kernel, const KernelSource& source, std::span<const std::uint32_t> constants) {
  const ShaderInterface needs = shader_interface(source.spirv);
  if (needs.bindings > info.max_bindings || needs.push_bytes > info.push_bytes)
    throw Exception(ErrorCode::unsuitable_device,
                    "the shader " + source.name + " needs more bindings than " + info.name + " has");
  const bool wide = uses_float64(source.spirv);
  if (wide && !info.float64)
    throw Exception(ErrorCode::unsuitable_device,
                    "the device " + info.name + " has no 64-bit floating-point numbers; use precision = \"float32\"");
  kernel.name = source.name;
  kernel.bindings = needs.bindings;
  kernel.push_bytes = needs.push_bytes;
  std::vector<VkDescriptorSetLayoutBinding> bindings(needs.bindings);
  for (unsigned b = 0; b < needs.bindings; ++b)
    bindings[b] = {b, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set_info.bindingCount = needs.bindings;
  set_info.pBindings = bindings.data();
  check(vkCreateDescriptorSetLayout(device, &set_info, nullptr, &kernel.set_layout), "describing a shader");
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, needs.push_bytes};
  VkPipelineLayoutCreateInfo layout_info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout_info.setLayoutCount = 1;
  layout_info.pSetLayouts = &kernel.set_layout;
  layout_info.pushConstantRangeCount = needs.push_bytes > 0 ? 1 : 0;
  layout_info.pPushConstantRanges = &push;
  check(vkCreatePipelineLayout(device, &layout_info, nullptr, &kernel.layout), "describing a shader");

  const std::vector<std::uint32_t> code =
      with_float_controls(source.spirv, wide ? info.controls64 : info.controls32, wide ? 64 : 32);
  VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_info.codeSize = code.size() * sizeof(std::uint32_t);
  module_info.pCode = code.data();
  VkShaderModule module = VK_NULL_HANDLE;
  check(vkCreateShaderModule(device, &module_info, nullptr, &module), "loading a shader");
  std::vector<VkSpecializationMapEntry> entries;
  std::vector<std::uint32_t> values(constants.begin(), constants.end());
  for (std::uint32_t c = 0; c < values.size(); ++c) entries.push_back({c, c * 4, 4});
  entries.push_back({kFusedConstant, static_cast<std::uint32_t>(values.size() * 4), 4});
  values.push_back(info.arithmetic == Arithmetic::fused ? VK_TRUE : VK_FALSE);
  const VkSpecializationInfo special{static_cast<std::uint32_t>(entries.size()), entries.data(), values.size() * 4,
                                     values.data()};
  VkComputePipelineCreateInfo pipeline_info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  pipeline_info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  pipeline_info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  pipeline_info.stage.module = module;
  pipeline_info.stage.pName = "main";
  pipeline_info.stage.pSpecializationInfo = &special;
  pipeline_info.layout = kernel.layout;
  const VkResult result =
      vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &pipeline_info, nullptr, &kernel.pipeline);
  vkDestroyShaderModule(device, module, nullptr);
  check(result, ("compiling the shader " + source.name).c_str());
}

void Device::Impl::destroy(const Kernel& kernel) {
  vkDestroyPipeline(device, kernel.pipeline, nullptr);
  vkDestroyPipelineLayout(device, kernel.layout, nullptr);
  vkDestroyDescriptorSetLayout(device, kernel.set_layout, nullptr);
}

const Kernel& Device::kernel(const KernelSource& asked, std::span<const std::uint32_t> constants) {
  const KernelSource source = impl_->faults.replace ? impl_->faults.replace(asked) : asked;
  const auto key = std::make_pair(source.spirv.data(), std::vector<std::uint32_t>(constants.begin(), constants.end()));
  if (const auto found = impl_->kernels.find(key); found != impl_->kernels.end()) return found->second;
  Kernel kernel;
  try {
    impl_->build(kernel, source, constants);
  } catch (...) {
    impl_->destroy(kernel);
    throw;
  }
  return impl_->kernels[key] = kernel;
}

void Device::write(const DeviceBuffer& to, std::uint64_t offset, std::span<const std::byte> from) {
  const DeviceBuffer staging = make_buffer(std::min<std::uint64_t>(from.size(), kStagingPart), BufferUse::upload);
  for (std::uint64_t at = 0; at < from.size(); at += kStagingPart) {
    const std::uint64_t count = std::min<std::uint64_t>(kStagingPart, from.size() - at);
    std::memcpy(staging.host(), from.data() + at, count);
    Commands commands(*this);
    commands.copy(staging, 0, to, offset + at, count);
    commands.finish();
    commands.submit();
    commands.wait();
  }
}

void Device::read(const DeviceBuffer& from, std::uint64_t offset, std::span<std::byte> to) {
  const DeviceBuffer staging = make_buffer(std::min<std::uint64_t>(to.size(), kStagingPart), BufferUse::download);
  for (std::uint64_t at = 0; at < to.size(); at += kStagingPart) {
    const std::uint64_t count = std::min<std::uint64_t>(kStagingPart, to.size() - at);
    Commands commands(*this);
    commands.copy(from, offset + at, staging, 0, count);
    commands.finish();
    commands.submit();
    commands.wait();
    std::memcpy(to.data() + at, staging.host(), count);
  }
}

void Device::zero(const DeviceBuffer& buffer) {
  if (buffer.bytes() == 0) return;
  Commands commands(*this);
  commands.fill_zero(buffer, 0, buffer.bytes());
  commands.finish();
  commands.submit();
  commands.wait();
}

}  // namespace gradloom::vulkan
