// The compression of compress.h on a Vulkan device, with the same bits.
#pragma once

#include "gradloom/exec/vulkan/device.h"
#include "gradloom/kernels/compress/compress.h"

namespace gradloom::kernels::compress {

struct DeviceCompressionPass {
  CompressionOptions options;  // not none: a copy does that
  std::size_t count = 0;
  vulkan::Binding gradient, packed;  // packed has compressed_bytes()
  vulkan::Binding residual;          // any buffer unless the kind is top_k
};

// Records one dispatch; no barrier.
template <class T>
void record_compress(vulkan::Device& device, vulkan::Commands& commands, const DeviceCompressionPass& pass);

}  // namespace gradloom::kernels::compress
