// The device itself: choice, memory, copies, the validation harness, faults.
#include <gmock/gmock.h>

#include <cstring>
#include <numeric>

#include "gradloom/exec/vulkan/spirv.h"
#include "tests/support/device.h"

namespace gradloom {
namespace {

using test::DeviceTest;
using ::testing::HasSubstr;
using vulkan::BufferUse;
using vulkan::DeviceInfo;
using vulkan::DeviceKind;

std::vector<DeviceInfo> two_devices() {
  DeviceInfo software, real;
  software.name = "llvmpipe (LLVM 15)";
  software.kind = DeviceKind::software;
  real.name = "Big GPU 3000";
  real.kind = DeviceKind::discrete;
  real.number = 1;
  return {software, real};
}

TEST(VulkanChoice, TakesNamesNumbersAndTheBestDevice) {
  const auto devices = two_devices();
  EXPECT_EQ(vulkan::choose_device(devices, "gpu")->number, 1u);
  EXPECT_EQ(vulkan::choose_device(devices, "0")->number, 0u);
  EXPECT_EQ(vulkan::choose_device(devices, "LLVMpipe")->number, 0u);
  EXPECT_EQ(vulkan::choose_device(devices, "big")->number, 1u);
  for (const char* wish : {"2", "radeon", ""}) {
    const auto none = vulkan::choose_device(devices, wish);
    ASSERT_FALSE(none.ok()) << wish;
    EXPECT_EQ(none.error().code, ErrorCode::missing_device);
    EXPECT_THAT(none.error().message, HasSubstr("Big GPU 3000"));
  }
  auto three = devices;
  three.push_back(devices[1]);
  three[2].number = 2;
  three[2].memory_bytes = 1;
  EXPECT_EQ(vulkan::choose_device(three, "gpu")->number, 2u) << "the largest memory of its kind";
  EXPECT_EQ(vulkan::choose_device({}, "gpu").error().code, ErrorCode::missing_device);
}

TEST(VulkanSpirv, AsksForFloatControlsInTheRightPlaces) {
  // Header; capability; memory model; entry point 4 "main"; execution mode.
  const std::vector<std::uint32_t> module = {
      0x07230203, 0x10500, 0, 9, 0, 0x20011, 1, 0x3000e, 0, 1, 0x5000f, 5, 4, 0x6e69616d, 0, 0x60010, 4, 17, 64, 1, 1};
  const auto changed = vulkan::with_float_controls(module, {.round_to_nearest = true, .flush_subnormals = true}, 32);
  EXPECT_EQ(changed.size(), module.size() + 2 * 2 + 7 + 2 * 4);
  EXPECT_EQ(changed[5], 0x20011u);
  EXPECT_EQ(changed[8], 4465u);   // capability: flush
  EXPECT_EQ(changed[10], 4467u);  // capability: round to nearest
  EXPECT_EQ(vulkan::with_float_controls(module, {}, 32), module);
  EXPECT_FALSE(vulkan::uses_float64(module));
}

using Vulkan = DeviceTest;

TEST_F(Vulkan, CopiesThereAndBack) {
  std::vector<std::uint32_t> there(3'000'000), back(there.size());  // several parts of the staging buffer
  std::iota(there.begin(), there.end(), 7u);
  auto buffer = device().make_buffer(there.size() * 4, BufferUse::device);
  device().write(buffer, 0, std::as_bytes(std::span(there)));
  device().read(buffer, 0, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(there, back);
  device().zero(buffer);
  device().read(buffer, 0, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, std::vector<std::uint32_t>(back.size(), 0));
}

TEST_F(Vulkan, GivesMemoryBackAndUsesItAgain) {
  const auto taken = device().counters().memory_bytes;
  for (int round = 0; round < 50; ++round) {
    std::vector<vulkan::DeviceBuffer> buffers;
    for (std::uint64_t bytes : {100u, 5000u, 1u << 20, 20u << 20}) {
      buffers.push_back(device().make_buffer(bytes, BufferUse::device));
      EXPECT_EQ(buffers.back().bytes(), bytes);
    }
    EXPECT_GE(device().counters().memory_bytes, taken + (21u << 20));
  }
  EXPECT_EQ(device().counters().memory_bytes, taken);
}

TEST_F(Vulkan, MissingBarrierIsNoticed) {
  // Two copies, of which the second reads what the first writes.
  const auto record = [&](bool with_barrier) {
    auto a = device().make_buffer(1024, BufferUse::device), b = device().make_buffer(1024, BufferUse::device),
         c = device().make_buffer(1024, BufferUse::device);
    vulkan::Commands commands(device());
    commands.copy(a, 0, b, 0, 1024);
    if (with_barrier) commands.barrier();
    commands.copy(b, 0, c, 0, 1024);
    commands.finish();
    commands.submit();
    commands.wait();
  };
  record(true);
  EXPECT_TRUE(messages_.all.empty());
  record(false);
  ASSERT_FALSE(messages_.all.empty()) << "the harness does not see hazards";
  EXPECT_THAT(messages_.all.front(), HasSubstr("SYNC-HAZARD"));
  messages_.all.clear();
}

TEST_F(Vulkan, UnknownDeviceIsMissing) {
  for (const char* name : {"no such device", "99"}) {
    const auto opened = vulkan::Device::open({.name = name});
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, ErrorCode::missing_device);
    EXPECT_THAT(opened.error().message, HasSubstr(name));
  }
}

TEST_F(Vulkan, ArithmeticIsFusedOnlyWhereFmaRoundsOnce) {
  const auto best = vulkan::Device::open({.name = "gpu"}).or_throw();
  const auto fused = vulkan::Device::open({.name = "gpu", .arithmetic = Arithmetic::fused});
  if (fused.ok()) {
    EXPECT_EQ((*fused)->info().arithmetic, Arithmetic::fused);
    EXPECT_EQ(best->info().arithmetic, default_arithmetic());
  } else {
    EXPECT_EQ(fused.error().code, ErrorCode::unsuitable_device);
    EXPECT_THAT(fused.error().message, HasSubstr("fma() of the device"));
    EXPECT_EQ(best->info().arithmetic, Arithmetic::split);
  }
  const auto split = vulkan::Device::open({.name = "gpu", .arithmetic = Arithmetic::split}).or_throw();
  EXPECT_EQ(split->info().arithmetic, Arithmetic::split);
  EXPECT_EQ(split->counters().submits, 0u) << "finding out is not for the user to see";
}

TEST_F(Vulkan, DeviceWithSmallLimitsIsRefused) {
  const auto opened = vulkan::Device::open({.name = "gpu", .faults = {.max_bindings = 4}});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::unsuitable_device);
  EXPECT_THAT(opened.error().message, HasSubstr("storage buffers"));
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.code();
  }
  return ErrorCode::busy;
}

TEST_F(Vulkan, FullMemoryHasAName) {
  const auto small = own_device({.memory_bytes = 1 << 20});
  std::vector<vulkan::DeviceBuffer> buffers;
  buffers.push_back(small->make_buffer(900'000, BufferUse::device));
  EXPECT_EQ(code_of([&] { buffers.push_back(small->make_buffer(900'000, BufferUse::device)); }),
            ErrorCode::device_memory);
  buffers.clear();  // and what was given back can be taken again
  buffers.push_back(small->make_buffer(900'000, BufferUse::device));
}

TEST_F(Vulkan, LostDeviceHasAName) {
  const auto fragile = own_device({.lose_at_submit = 2});
  auto buffer = fragile->make_buffer(64, BufferUse::device);
  fragile->zero(buffer);
  EXPECT_EQ(code_of([&] { fragile->zero(buffer); }), ErrorCode::device_lost);
  EXPECT_EQ(code_of([&] { fragile->zero(buffer); }), ErrorCode::device_lost);
}

}  // namespace
}  // namespace gradloom
