#include <algorithm>

#include "gradloom/base/rounding.h"
#include "gradloom/exec/vulkan/internal.h"

namespace gradloom::vulkan {

namespace {

constexpr std::uint32_t kSetsPerPool = 64, kMaxTimed = 512;
constexpr std::uint64_t kTimeout = 600'000'000'000;  // nanoseconds: a device that takes longer is lost

constexpr VkPipelineStageFlags kStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;

void memory_barrier(VkCommandBuffer buffer, VkPipelineStageFlags to, VkAccessFlags to_access) {
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = kWrites;
  barrier.dstAccessMask = to_access;
  vkCmdPipelineBarrier(buffer, kStages, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

VkDescriptorSet allocate_set(Commands::Impl& impl, const Kernel& kernel) {
  VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  info.descriptorSetCount = 1;
  info.pSetLayouts = &kernel.set_layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  if (impl.each.dispatches % kSetsPerPool == 0) {
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 8 * kSetsPerPool};
    VkDescriptorPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool_info.maxSets = kSetsPerPool;
    pool_info.poolSizeCount = 1;
    pool_info.pPoolSizes = &size;
    VkDescriptorPool pool = VK_NULL_HANDLE;
    check(vkCreateDescriptorPool(impl.owner->device, &pool_info, nullptr, &pool), "making a descriptor pool");
    impl.descriptor_pools.push_back(pool);
  }
  info.descriptorPool = impl.descriptor_pools.back();
  check(vkAllocateDescriptorSets(impl.owner->device, &info, &set), "binding buffers");
  return set;
}

}  // namespace

Commands::Impl::~Impl() {
  if (!owner) return;
  // What may still run is not freed.
  if (pending && vkWaitForFences(owner->device, 1, &fence, VK_TRUE, owner->hangs ? 0 : kTimeout) == VK_TIMEOUT) return;
  for (VkDescriptorPool pool : descriptor_pools) vkDestroyDescriptorPool(owner->device, pool, nullptr);
  if (queries) vkDestroyQueryPool(owner->device, queries, nullptr);
  if (fence) vkDestroyFence(owner->device, fence, nullptr);
  if (buffer) vkFreeCommandBuffers(owner->device, owner->pool, 1, &buffer);
}

Commands::Commands(Device& device, Timestamps timestamps) : impl_(std::make_unique<Impl>()) {
  impl_->owner = &device.impl();
  const VkDevice handle = impl_->owner->device;
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = impl_->owner->pool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  check(vkAllocateCommandBuffers(handle, &info, &impl_->buffer), "making a command buffer");
  const VkFenceCreateInfo fence_info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  check(vkCreateFence(handle, &fence_info, nullptr, &impl_->fence), "making a fence");
  const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  check(vkBeginCommandBuffer(impl_->buffer, &begin), "recording");
  if (timestamps == Timestamps::on && impl_->owner->info.timestamps) {
    VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queries.queryCount = 2 * kMaxTimed;
    check(vkCreateQueryPool(handle, &queries, nullptr, &impl_->queries), "making a query pool");
    vkCmdResetQueryPool(impl_->buffer, impl_->queries, 0, 2 * kMaxTimed);
  }
  // What earlier submits wrote must be seen, and what they read must not be overwritten.
  barrier();
}

Commands::Commands(Commands&&) noexcept = default;
Commands& Commands::operator=(Commands&&) noexcept = default;
Commands::~Commands() = default;

void Commands::copy(const DeviceBuffer& from, std::uint64_t from_offset, const DeviceBuffer& to,
                    std::uint64_t to_offset, std::uint64_t bytes) {
  if (bytes == 0) return;
  if (from_offset + bytes > from.bytes() || to_offset + bytes > to.bytes())
    throw_invalid("a copy of " + std::to_string(bytes) + " bytes exceeds its buffers");
  const VkBufferCopy region{from_offset, to_offset, bytes};
  vkCmdCopyBuffer(impl_->buffer, from.impl()->buffer, to.impl()->buffer, 1, &region);
  if (from.impl()->use == BufferUse::upload) impl_->each.bytes_up += bytes;
  if (to.impl()->use == BufferUse::download) impl_->each.bytes_down += bytes;
}

void Commands::fill_zero(const DeviceBuffer& buffer, std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0) return;
  const bool rest = offset + bytes == buffer.bytes();
  vkCmdFillBuffer(impl_->buffer, buffer.impl()->buffer, offset, rest ? VK_WHOLE_SIZE : bytes, 0);
}

void Commands::dispatch(const Dispatch& what) {
  if (what.groups == 0) return;
  const Kernel& kernel = *what.kernel;
  if (what.bindings.size() != kernel.bindings || what.push.size() != kernel.push_bytes)
    throw_invalid("the shader " + kernel.name + " was not given the bindings that it has");
  const VkDescriptorSet set = allocate_set(*impl_, kernel);
  std::vector<VkDescriptorBufferInfo> infos;
  for (const Binding& b : what.bindings) infos.push_back({b.buffer->impl()->buffer, b.offset, b.bytes});
  std::vector<VkWriteDescriptorSet> writes(infos.size());
  for (std::uint32_t b = 0; b < infos.size(); ++b) {
    writes[b] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    writes[b].dstSet = set;
    writes[b].dstBinding = b;
    writes[b].descriptorCount = 1;
    writes[b].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[b].pBufferInfo = &infos[b];
  }
  vkUpdateDescriptorSets(impl_->owner->device, static_cast<std::uint32_t>(writes.size()), writes.data(), 0, nullptr);
  const std::uint64_t row = std::min(impl_->owner->info.max_groups[0], 65535u);
  const std::uint64_t x = std::min(what.groups, row), y = divide_up(what.groups, x);
  if (y > impl_->owner->info.max_groups[1])
    throw Exception(ErrorCode::unsuitable_device, "the shader " + kernel.name + " needs " +
                                                      std::to_string(what.groups) +
                                                      " groups, more than the device runs at once");
  vkCmdBindPipeline(impl_->buffer, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline);
  vkCmdBindDescriptorSets(impl_->buffer, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout, 0, 1, &set, 0, nullptr);
  if (!what.push.empty())
    vkCmdPushConstants(impl_->buffer, kernel.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                       static_cast<std::uint32_t>(what.push.size()), what.push.data());
  const bool timed = impl_->queries && impl_->labels.size() < kMaxTimed;
  const auto query = static_cast<std::uint32_t>(2 * impl_->labels.size());
  if (timed) vkCmdWriteTimestamp(impl_->buffer, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, impl_->queries, query);
  vkCmdDispatch(impl_->buffer, static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), 1);
  if (timed) {
    vkCmdWriteTimestamp(impl_->buffer, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, impl_->queries, query + 1);
    impl_->labels.push_back(what.label);
  }
  ++impl_->each.dispatches;
}

void Commands::barrier() {
  if (++impl_->barriers != impl_->owner->faults.drop_barrier) memory_barrier(impl_->buffer, kStages, kReads | kWrites);
}

void Commands::finish() {
  if (impl_->each.bytes_down > 0) memory_barrier(impl_->buffer, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  check(vkEndCommandBuffer(impl_->buffer), "recording");
}

void Commands::submit() {
  wait();
  Device::Impl& device = *impl_->owner;
  DeviceCounters& all = device.counters;
  ++all.submits;
  if (device.faults.lose_at_submit > 0 && all.submits >= device.faults.lose_at_submit)
    check(VK_ERROR_DEVICE_LOST, "submitting work");
  check(vkResetFences(device.device, 1, &impl_->fence), "resetting a fence");
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &impl_->buffer;
  check(vkQueueSubmit(device.queue, 1, &info, impl_->fence), "submitting work");
  impl_->pending = true;
  all.dispatches += impl_->each.dispatches;
  all.bytes_up += impl_->each.bytes_up;
  all.bytes_down += impl_->each.bytes_down;
}

void Commands::wait() {
  if (!impl_->pending) return;
  const VkResult result = vkWaitForFences(impl_->owner->device, 1, &impl_->fence, VK_TRUE, kTimeout);
  impl_->pending = impl_->owner->hangs = result == VK_TIMEOUT;
  check(result == VK_TIMEOUT ? VK_ERROR_DEVICE_LOST : result, "waiting for the device");
}

std::vector<Commands::Time> Commands::times() {
  std::vector<Time> result;
  if (!impl_->queries || impl_->labels.empty()) return result;
  std::vector<std::uint64_t> ticks(2 * impl_->labels.size());
  check(vkGetQueryPoolResults(impl_->owner->device, impl_->queries, 0, static_cast<std::uint32_t>(ticks.size()),
                              ticks.size() * 8, ticks.data(), 8, VK_QUERY_RESULT_64_BIT),
        "reading timestamps");
  for (std::size_t d = 0; d < impl_->labels.size(); ++d)
    result.push_back({impl_->labels[d], static_cast<double>(ticks[2 * d + 1] - ticks[2 * d]) *
                                            impl_->owner->info.nanoseconds_per_tick * 1e-3});
  return result;
}

}  // namespace gradloom::vulkan
