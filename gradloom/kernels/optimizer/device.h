// The updates of optimizer.h on a Vulkan device, with their bits, and clipping by norm. The constants of a step stand
// in the head of the batch (shader/step.h).
#pragma once

#include <cstdint>
#include <string>

#include "gradloom/exec/vulkan/device.h"
#include "gradloom/kernels/optimizer/optimizer.h"

namespace gradloom::kernels::optimizer {

struct DevicePass {
  Rule rule = Rule::adam;
  std::size_t count = 0;                 // elements; this and what follows in elements: multiples of four
  vulkan::Binding parameters, gradient;  // the same range of each array
  vulkan::Binding first, second;         // of the state; any buffer where the rule has none
  vulkan::Binding samples, status;
  vulkan::Binding norm;  // that of make_norm; any buffer without clipping
  bool clipped = false;
  std::size_t decay_begin = 0, decay_end = 0;  // elements that the step's weight decay is for; empty: none
};

// Fills what updates read in the head of a batch.
template <class T>
void fill_head(std::byte* head, const Step<T>& step);

// Records one dispatch; no barrier.
template <class T>
void record_update(vulkan::Device& device, vulkan::Commands& commands, const DevicePass& pass,
                   const std::string& label);

// Room for the norm of a gradient: the kernels that compute the gradient add up its squares, each of `shares` groups
// its own. An invocation adds blocks of 32 squares, then the blocks, in the order in which it makes elements final; a
// group adds its invocations in a tree. The group that ends last adds all shares, every invocation some of them in
// order, then a tree. Which elements an invocation has depends on layer, batch and device, so the last digits of the
// norm do too; with b blocks and s shares of an invocation it is right to (48 + b + s) / 2 roundings. From run to run
// it is the same.
template <class T>
vulkan::DeviceBuffer make_norm(vulkan::Device& device, std::size_t shares);
// Whether the squares of all steps so far were. After some that were not, no update changes anything.
bool norm_is_finite(vulkan::Device& device, const vulkan::DeviceBuffer& norm);

}  // namespace gradloom::kernels::optimizer
