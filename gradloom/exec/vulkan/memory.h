// Sub-allocation: few allocations of the device, cut into aligned pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gradloom/exec/vulkan/api.h"

namespace gradloom::vulkan {

struct Block;

// A piece of a block.
struct Piece {
  Block* block = nullptr;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize offset = 0, size = 0;
  std::byte* host = nullptr;  // null when the memory is not mapped
};

// Where pieces of one kind of memory come from. `limit`: bytes of all blocks together, over all pools that share the
// counter.
class MemoryPool {
 public:
  MemoryPool(VkDevice device, std::uint64_t max_allocation, std::uint64_t limit);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // `type` is an index of a memory type. Throws device_memory.
  Piece take(VkDeviceSize size, VkDeviceSize alignment, std::uint32_t type, bool mapped);
  void give_back(const Piece& piece);
  std::uint64_t bytes() const { return bytes_; }  // of all pieces that are out

 private:
  Block& add_block(VkDeviceSize size, std::uint32_t type, bool mapped);

  VkDevice device_;
  std::uint64_t max_allocation_, limit_;
  std::uint64_t bytes_ = 0, block_bytes_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace gradloom::vulkan
