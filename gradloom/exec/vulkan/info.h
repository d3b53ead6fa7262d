// What a Vulkan device is and can do; how to find one by name or number. No Vulkan header is needed to use this.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/exec/arithmetic.h"

namespace gradloom::vulkan {

enum class DeviceKind { discrete, integrated, virtual_gpu, software, other };
std::string_view name_of(DeviceKind kind);

// What the device promises about the arithmetic of one scalar type. The same bits as the CPU are promised only with
// `round_to_nearest` and `flush_subnormals`; without the latter they can differ where a subnormal number appears.
struct FloatControls {
  bool round_to_nearest = false;
  bool flush_subnormals = false;
  bool keep_subnormals = false;
  bool keep_inf_nan = false;  // infinities, NaN and the sign of zero
};

struct DeviceInfo {
  unsigned number = 0;  // the N of --device N
  std::string name, driver, api;
  DeviceKind kind = DeviceKind::other;
  std::uint64_t memory_bytes = 0;      // of the largest heap that lives on the device
  std::uint64_t max_allocation = 0;    // bytes of one allocation
  std::uint64_t max_buffer_range = 0;  // bytes that a shader sees through one binding
  std::array<std::uint32_t, 3> max_groups{};
  std::uint32_t max_group_size = 0;  // invocations of one workgroup
  std::uint32_t max_bindings = 0;    // storage buffers of one shader
  std::uint32_t shared_bytes = 0;    // memory of one workgroup
  std::uint32_t push_bytes = 0;
  std::uint32_t subgroup = 0;          // invocations that run in step
  bool shuffles = false;               // they can read each other's values
  std::uint32_t offset_alignment = 1;  // of a binding, in bytes
  bool float64 = false;
  bool timestamps = false;
  double nanoseconds_per_tick = 0.0;
  FloatControls controls32, controls64;
  Arithmetic arithmetic = Arithmetic::split;  // that of the kernels of an open device; a list cannot know
};

// All devices in the driver's order. An empty list when there is a loader but no driver. Fails with missing_device when
// this build has no Vulkan backend.
Result<std::vector<DeviceInfo>> list_devices();

// The device that `wish` means: "gpu" (discrete before integrated, virtual, software; then the largest memory), a
// number, or a part of a name in any case. Fails with missing_device, naming what there is.
Result<DeviceInfo> choose_device(const std::vector<DeviceInfo>& devices, std::string_view wish);

}  // namespace gradloom::vulkan
