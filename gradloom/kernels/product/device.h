// The kernels of product.h on a Vulkan device, with their bits. Matrices are row-major, (B, padded width).
#pragma once

#include "gradloom/exec/vulkan/device.h"
#include "gradloom/kernels/product/product.h"

namespace gradloom::kernels::product {

// Each records one dispatch; no barrier.
template <class T>
void record_forward(vulkan::Device& device, vulkan::Commands& commands, const LayerNodes& shape, std::size_t batch,
                    vulkan::Binding sums, vulkan::Binding nodes, const std::string& label);
template <class T>
void record_backward(vulkan::Device& device, vulkan::Commands& commands, const LayerNodes& shape, std::size_t batch,
                     vulkan::Binding sums, vulkan::Binding dl_dnodes, vulkan::Binding dl_dsums,
                     const std::string& label);

}  // namespace gradloom::kernels::product
