// Sums over leaves in the tree of tree_sum.h, on a Vulkan device.
#pragma once

#include <string>

#include "gradloom/exec/vulkan/device.h"

namespace gradloom::kernels::reduce {

// Where a sum over the leaves of an optimizer step grows. One or two leaves need none of it.
struct DeviceTreeMemory {
  vulkan::Binding upper;      // the upper levels of the elements
  std::size_t stride = 0;     // elements from one level to the next
  vulkan::Binding leaves;     // sums of leaves that stand side by side until they are added
  vulkan::Binding step_head;  // shader/step.h; says how many leaves of the step came before
};

// Elements [0, first_count) and [second_at, second_at + second_count) of the root, of each level and of each leaf; all
// are multiples of four.
struct DeviceTreePass {
  vulkan::Binding root;
  DeviceTreeMemory memory;
  std::size_t first_count = 0, second_at = 0, second_count = 0;
  std::size_t leaves = 0, first_leaf = 0;  // to add; number of the first, counted from those that came before
  std::size_t leaf_stride = 0;             // elements
  bool complete = true;                    // no leaf comes behind these
  // The norm of all gradients of a step (optimizer/device.h), of a complete sum: its shares, and the first one of this
  // pass. No buffer: not asked for.
  vulkan::Binding norm;
  std::size_t first_share = 0, shares = 0;
};

// Groups, each of which has a share of the norm, for a sum of so many elements.
std::size_t tree_groups(const vulkan::DeviceInfo& device, std::size_t count);

// Records one dispatch; no barrier.
template <class T>
void record_tree(vulkan::Device& device, vulkan::Commands& commands, const DeviceTreePass& pass,
                 const std::string& label);

}  // namespace gradloom::kernels::reduce
