#include "gradloom/exec/vulkan/memory.h"

#include <algorithm>
#include <map>
#include <string>

#include "gradloom/base/error.h"
#include "gradloom/base/rounding.h"

namespace gradloom::vulkan {

namespace {
constexpr VkDeviceSize kBlock = VkDeviceSize{16} << 20;  // small enough for a full device, large enough to be few
}

struct Block {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize size = 0;
  std::uint32_t type = 0;
  std::byte* host = nullptr;
  std::map<VkDeviceSize, VkDeviceSize> free;  // offset to size; neighbours are merged
};

MemoryPool::MemoryPool(VkDevice device, std::uint64_t max_allocation, std::uint64_t limit)
    : device_(device), max_allocation_(max_allocation), limit_(limit) {}

MemoryPool::~MemoryPool() {
  for (const auto& block : blocks_) vkFreeMemory(device_, block->memory, nullptr);
}

Block& MemoryPool::add_block(VkDeviceSize size, std::uint32_t type, bool mapped) {
  const auto full = [&] {
    throw Exception(ErrorCode::device_memory, "the device has no room for " + std::to_string(size) + " bytes more; " +
                                                  std::to_string(block_bytes_) +
                                                  " are in use; a smaller train.batch needs less");
  };
  if (size > max_allocation_ || (limit_ > 0 && block_bytes_ + size > limit_)) full();
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = size;
  info.memoryTypeIndex = type;
  auto block = std::make_unique<Block>();
  if (vkAllocateMemory(device_, &info, nullptr, &block->memory) != VK_SUCCESS) full();
  block->size = size;
  block->type = type;
  block->free.emplace(0, size);
  void* host = nullptr;
  if (mapped && vkMapMemory(device_, block->memory, 0, VK_WHOLE_SIZE, 0, &host) != VK_SUCCESS) {
    vkFreeMemory(device_, block->memory, nullptr);
    full();
  }
  block->host = static_cast<std::byte*>(host);
  block_bytes_ += size;
  blocks_.push_back(std::move(block));
  return *blocks_.back();
}

Piece MemoryPool::take(VkDeviceSize size, VkDeviceSize alignment, std::uint32_t type, bool mapped) {
  const auto from = [&](Block& block) -> Piece {
    for (auto [offset, free] : block.free) {
      const VkDeviceSize begin = round_up(offset, alignment);
      if (begin + size > offset + free) continue;
      block.free.erase(offset);
      if (begin > offset) block.free.emplace(offset, begin - offset);
      if (begin + size < offset + free) block.free.emplace(begin + size, offset + free - begin - size);
      bytes_ += size;
      return {&block, block.memory, begin, size, block.host ? block.host + begin : nullptr};
    }
    return {};
  };
  for (const auto& block : blocks_)
    if (block->type == type)
      if (const Piece piece = from(*block); piece.block) return piece;
  // A block of the usual size may not fit any more where the piece itself still does.
  VkDeviceSize wanted = std::max(size, std::min<VkDeviceSize>(kBlock, max_allocation_));
  if (limit_ > 0 && block_bytes_ + wanted > limit_) wanted = size;
  return from(add_block(wanted, type, mapped));
}

void MemoryPool::give_back(const Piece& piece) {
  if (!piece.block) return;
  bytes_ -= piece.size;
  auto& free = piece.block->free;
  auto at = free.emplace(piece.offset, piece.size).first;
  if (const auto next = std::next(at); next != free.end() && at->first + at->second == next->first) {
    at->second += next->second;
    free.erase(next);
  }
  if (at != free.begin())
    if (const auto before = std::prev(at); before->first + before->second == at->first) {
      before->second += at->second;
      free.erase(at);
    }
  // A block of its own (larger than usual) goes back to the device with its piece.
  if (piece.block->size <= kBlock || free.size() != 1 || free.begin()->second != piece.block->size) return;
  const auto block =
      std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& b) { return b.get() == piece.block; });
  vkFreeMemory(device_, (*block)->memory, nullptr);
  block_bytes_ -= (*block)->size;
  blocks_.erase(block);
}

}  // namespace gradloom::vulkan
