// A Vulkan device with core and synchronization validation on: a message of the layer fails the test that caused it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gradloom/exec/exec.h"
#include "gradloom/exec/vulkan/device.h"
#include "tests/support/sloppy_shaders.h"

namespace gradloom::test {

struct Messages {
  std::mutex mutex;
  std::vector<std::string> all;
  void add(const std::string& message) {
    const std::lock_guard lock(mutex);
    all.push_back(message);
  }
};

// GRADLOOM_TEST_DEVICE makes every test's device another one: `gpu-tiles`, kernels choose the tiles of a GPU; `sloppy`,
// what a GPU's compiler makes of a division is some ulp off; `fused` with it, its arithmetic is fused, by operations
// that are computed from others. Several may be given.
inline vulkan::Faults of_environment(vulkan::Faults faults) {
  const char* value = std::getenv("GRADLOOM_TEST_DEVICE");
  const std::string words = value ? value : "";
  if (words.find("gpu-tiles") != std::string::npos) faults.as_discrete = true;
  if (words.find("sloppy") != std::string::npos) faults.replace = sloppy_shader;
  if (words.find("fused") != std::string::npos) faults.as_fused = true;
  return faults;
}

// One thread of the CPU, in the arithmetic of the device.
inline ExecOptions exec_like(const vulkan::Device& device) {
  return {.threads = 1, .variant = {Variant::fast, device.info().arithmetic}};
}

// Tests skip only where no Vulkan device exists at all.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto devices = vulkan::list_devices();
    if (!devices || devices->empty()) GTEST_SKIP() << (devices ? "there is no Vulkan device" : devices.error().message);
  }
  void TearDown() override {
    for (const std::string& message : messages_.all) ADD_FAILURE() << "validation: " << message;
  }

  // One device for all tests of a suite that need nothing special: pipelines are compiled once.
  vulkan::Device& device() {
    Shared& shared = shared_device();
    shared.to = &messages_;
    if (!shared.device)
      shared.device = vulkan::Device::open({.name = "gpu",
                                            .validation = vulkan::Validation::on,
                                            .on_message = [&shared](const std::string& m) { shared.to->add(m); },
                                            .faults = of_environment({})})
                          .or_throw();
    return *shared.device;
  }

  // Not when the program ends: a driver may be gone then.
  static void TearDownTestSuite() {
    Messages last;
    shared_device().to = &last;
    shared_device().device.reset();
    for (const std::string& message : last.all) ADD_FAILURE() << "validation: " << message;
  }

  std::unique_ptr<vulkan::Device> own_device(const vulkan::Faults& faults) {
    return vulkan::Device::open({.name = "gpu",
                                 .validation = vulkan::Validation::on,
                                 .on_message = [this](const std::string& m) { messages_.add(m); },
                                 .faults = of_environment(faults)})
        .or_throw();
  }

  Messages messages_;

 private:
  struct Shared {
    Messages* to = nullptr;
    std::unique_ptr<vulkan::Device> device;
  };
  static Shared& shared_device() {
    static Shared shared;
    return shared;
  }
};

}  // namespace gradloom::test
